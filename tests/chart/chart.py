# SPDX-License-Identifier: Apache-2.0
"""What the tests of the chart share: rendering it, alone and as a dependency, and the files beside it."""

import json
import os
import re
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


def parse(text):
    """The values of a --set-json that names no element of a list."""
    values, rest = {}, text
    while rest:
        path, rest = rest.split("=", 1)
        value, end = json.JSONDecoder().raw_decode(rest)
        rest = rest[end:].removeprefix(",")
        at = values
        *names, last = path.split(".")
        for name in names:
            at = at.setdefault(name, {})
        at[last] = value
    return values


class Many:
    """The chart as so many dependencies of one, each with values of its own: what takes Helm once instead of hundreds of times."""

    def __init__(self, all_values):
        with tempfile.TemporaryDirectory() as directory:
            os.mkdir(os.path.join(directory, "charts"))
            os.symlink(CHART, os.path.join(directory, "charts/purser"))
            names = [f"c{number}" for number in range(len(all_values))]
            dependencies = [{"name": "purser", "alias": name, "version": ">= 0.1.0"} for name in names]
            for name, content in (("Chart", {"apiVersion": "v2", "name": "many", "version": "1.0.0", "dependencies": dependencies}),
                                  ("values", dict(zip(names, all_values)))):
                with open(os.path.join(directory, name + ".yaml"), "w", encoding="utf-8") as file:
                    json.dump(content, file)
            self.done = helm("template", "x", directory)

    def faults(self):
        """What the schema has against each, by its number."""
        sections = re.split(r"^c(\d+):\n", self.done.stderr, flags=re.MULTILINE)
        return {int(number): text for number, text in zip(sections[1::2], sections[2::2])}

    def documents(self):
        """Those of each, by its number, where none was refused."""
        documents = {}
        for document in yaml.load_all(self.done.stdout, yaml.CSafeLoader):
            if document:
                number = int(document["metadata"]["labels"]["app.kubernetes.io/name"][1:])
                documents.setdefault(number, []).append(document)
        return documents


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
