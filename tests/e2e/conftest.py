# SPDX-License-Identifier: Apache-2.0
"""Fixtures: the cluster, Purser installed on it, a namespace of one's own; and what is shown of them when a test fails."""

import contextlib
import hashlib
import re
import secrets
import time

import pytest

from kube import PURSER_NAMESPACE, RESOURCES, ROOT, Cluster, wait_until

VALUES = ROOT / "tests/e2e/values.yaml"


def image_digest():
    """So that the plugin of a cluster that was kept is replaced when its image was built anew."""
    return "sha256-" + hashlib.sha256((ROOT / "build/images/device-plugin.tar").read_bytes()).hexdigest()[:16]


@pytest.fixture(scope="session")
def cluster():
    cluster = Cluster()
    cluster.run("status")
    return cluster


def install(cluster):
    """Purser as tests/e2e/values.yaml has it, registered with the kubelet."""
    cluster.helm("upgrade", "--install", "purser", ROOT / "charts/purser", "--namespace", PURSER_NAMESPACE, "--create-namespace",
                 "--values", VALUES, "--set", "devicePlugin.podAnnotations.image=" + image_digest(), "--wait", "--timeout", "300s",
                 timeout=330)
    wait_until(lambda: cluster.resources() == RESOURCES, "the node has Purser's resources", 30)


def await_quiet(cluster):
    """Until the pods of earlier tests are gone, with what they held of the node: for tests that measure the node or need all of its units."""
    wait_until(lambda: not [pod for pod in cluster.get("pods", "--all-namespaces")["items"] if "deletionTimestamp" in pod["metadata"]],
               "no pod is terminating", 300)


@pytest.fixture(scope="session")
def purser(cluster):
    """The cluster with Purser on it. It stays for the next file's tests."""
    install(cluster)
    await_quiet(cluster)
    return cluster


@contextlib.contextmanager
def a_namespace(cluster, name, level="restricted"):
    """A namespace that enforces a level of the Pod Security Standards; afterwards it goes, with all in it, beside what follows: see
    await_quiet()."""
    name = f"{name}-{secrets.token_hex(2)}"
    cluster.kubectl("create", "namespace", name)
    cluster.kubectl("label", "namespace", name, "pod-security.kubernetes.io/enforce=" + level)
    wait_until(lambda: cluster.kubectl("get", "serviceaccount", "default", "--namespace", name, check=False),
               "the namespace has its service account", 30)
    try:
        yield name
    finally:
        cluster.kubectl("delete", "deployments,jobs", "--all", "--namespace", name, "--wait=false")
        cluster.kubectl("delete", "pods", "--all", "--namespace", name, "--now", "--wait=false")
        cluster.kubectl("delete", "namespace", name, "--wait=false")


@pytest.fixture
def namespace(cluster, request):
    """One of the test's own, of level `restricted` or the level that the test is parametrized with."""
    own = re.sub(r"[^a-z0-9]+", "-", request.node.name.removeprefix("test_").lower())[:40].strip("-")
    with a_namespace(cluster, own, getattr(request, "param", "restricted")) as name:
        yield name


def show(cluster, namespaces):
    """What an engineer would ask for first."""
    for name in namespaces:
        yield f"events of {name}", cluster.kubectl("get", "events", "--namespace", name, "--sort-by=.lastTimestamp", check=False)
        yield f"pods of {name}", cluster.kubectl("describe", "pods", "--namespace", name, check=False)
        for pod in cluster.get("pods", "--namespace", name)["items"]:
            own = pod["metadata"]["name"]
            for container in pod["spec"].get("initContainers", []) + pod["spec"]["containers"]:
                for previous in ((), ("--previous",)):
                    log = cluster.kubectl("logs", own, "--namespace", name, "--container", container["name"], "--tail=60", *previous, check=False)
                    if log:
                        yield f"log of {own}/{container['name']} {' '.join(previous)}", log
                for port in container.get("ports", []):
                    if "metrics" in port.get("name", "") and pod["status"].get("podIP"):
                        address = f"{pod['status']['podIP']}:{port['containerPort']}"
                        for path in ("readyz", "metrics"):
                            yield f"/{path} of {own}", cluster.node(f"curl -s --max-time 5 http://{address}/{path} | grep -v '^#'", check=False)
    yield "node", cluster.kubectl("describe", "nodes", check=False)
    yield "kubelet", cluster.run("logs", "kubelet", check=False).stdout[-4000:]


@pytest.hookimpl(hookwrapper=True)
def pytest_runtest_makereport(item, call):
    report = (yield).get_result()
    if not report.failed or "cluster" not in item.funcargs:
        return
    namespaces = [PURSER_NAMESPACE] + [item.funcargs[name] for name in ("namespace", "neighbourhood", "host_network") if name in item.funcargs]
    started = time.monotonic()
    try:
        for title, text in show(item.funcargs["cluster"], namespaces):
            report.sections.append((title, text))
            if time.monotonic() - started > 120:
                break
    except Exception as error:  # what is shown must not hide the failure itself
        report.sections.append(("no more to show", repr(error)))


def pytest_sessionfinish(session):
    """A file whose every test was skipped has tested nothing."""
    reporter = session.config.pluginmanager.get_plugin("terminalreporter")
    if not reporter.stats.get("passed"):
        session.exitstatus = session.exitstatus or 1
