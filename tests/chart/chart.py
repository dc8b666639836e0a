# SPDX-License-Identifier: Apache-2.0
"""What the tests of the chart share: rendering it, alone and as a dependency, and the files beside it."""

import os
import shutil
import subprocess
import tempfile

import yaml

ROOT = os.path.realpath(os.path.join(os.path.dirname(__file__), "../.."))
CHART = os.path.join(ROOT, "charts/purser")
HELM = os.environ.get("HELM", "helm")
PROMTOOL = os.environ.get("PROMTOOL", "promtool")
MONITORING = "podMonitor.enabled=true,prometheusRule.enabled=true,dashboard.enabled=true"


def helm(*arguments):
    return subprocess.run([HELM, *arguments], capture_output=True, text=True)


def render(*arguments, chart=CHART):
    done = helm("template", "purser", chart, "--namespace", "purser-system", *arguments)
    if done.returncode != 0:
        raise AssertionError(f"helm template {' '.join(arguments)}: {done.stderr}")
    return [document for document in yaml.safe_load_all(done.stdout) if document]


def of_kind(documents, kind, name="purser"):
    return next(d for d in documents if d["kind"] == kind and d["metadata"]["name"] == name)


def sidecar(**overrides):
    """The container that the template makes with these values."""
    with tempfile.TemporaryDirectory() as directory:
        return render(chart=dependent(directory, overrides))[0]["spec"]["initContainers"][0]


def dependent(directory, overrides, purser=None):
    """A chart of an application that depends on this one."""
    chart = shutil.copytree(os.path.join(ROOT, "tests/chart/dependent"), os.path.join(directory, "application"))
    os.mkdir(os.path.join(chart, "charts"))
    os.symlink(CHART, os.path.join(chart, "charts/purser"))
    values = {"purser": {"devicePlugin": {"enabled": False}, **(purser or {})}, "overrides": overrides}
    with open(os.path.join(chart, "values.yaml"), "w", encoding="utf-8") as file:
        yaml.safe_dump(values, file)
    return chart


def cases(name):
    with open(os.path.join(ROOT, "tests/chart", name), encoding="utf-8") as file:
        return [line.rstrip("\n") for line in file if line.strip() and not line.startswith("#")]


def examples():
    directory = os.path.join(ROOT, "manifests/examples")
    for name in sorted(os.listdir(directory)):
        with open(os.path.join(directory, name), encoding="utf-8") as file:
            for document in yaml.safe_load_all(file):
                yield name, document


def pod_specs():
    for name, document in examples():
        if document["kind"] == "Pod":
            yield name, document["spec"]
        elif "template" in document["spec"]:
            yield name, document["spec"]["template"]["spec"]
