# SPDX-License-Identifier: Apache-2.0
"""`purser check` as an init container, as docs/check.md shows it: the pod starts, or it does not and the log says why."""

import re

import pytest
import yaml

import conftest
import pods
from kube import ROOT

FITS = """
version: v1
groups:
  - {name: clients, count: 8, maxSendWr: 256, maxSendSge: 4, maxRecvWr: 256}
"""
# One SGE more than soft-RoCE takes, and more queue memory than the budget of 64 MiB.
REFUSED = """
version: v1
groups:
  - {name: wide, maxSendSge: 33}
  - {name: clients, count: 1000, maxSendWr: 256, maxSendSge: 4, maxRecvWr: 256}
"""


def documented():
    """The example: an init container and its volume."""
    section = (ROOT / "docs/check.md").read_text().split("## In an init container")[1]
    return yaml.safe_load(re.search("```yaml\n(.*?)```", section, re.DOTALL)[1])


def pod_with_preflight(name):
    """Whose workload is the ConfigMap of its name."""
    pod = pods.sidecar_pod(name)
    example = documented()
    preflight = example["initContainers"][0]
    preflight.update(imagePullPolicy="Never", securityContext=pods.sidecar_of(pod)["securityContext"])
    pod["spec"]["initContainers"].insert(0, preflight)
    for volume in example["volumes"]:
        volume["configMap"]["name"] = name
    pod["spec"]["volumes"] += example["volumes"]
    return pod


def workload(name, text):
    return {"apiVersion": "v1", "kind": "ConfigMap", "metadata": {"name": name}, "data": {"workload.yaml": text}}


@pytest.fixture(scope="module")
def namespace(purser):
    """One with the pods of both tests, which start together."""
    with conftest.a_namespace(purser, "preflight") as name:
        for pod, text in (("fits", FITS), ("refused", REFUSED)):
            purser.apply(workload(pod, text), pod_with_preflight(pod), namespace=name)
        yield name


def test_a_pod_whose_queues_will_be_had_starts(purser, namespace):
    status = purser.await_pod("fits", namespace)["status"]
    log = purser.logs("fits", namespace, "preflight")
    assert status["initContainerStatuses"][0]["state"]["terminated"]["exitCode"] == 0, log
    # The device is opened, and the budget is what the plugin allotted.
    for line in (r"ok +device +rxe0: rxe", r"ok +max_qp_wr +at most 256 sends and 256 receives; rxe0 takes 1,048,576",
                 r"ok +budget +queues take .* of a budget of 64 MiB", r"\d+ ok, \d+ warnings?, 0 failures$"):
        assert re.search(f"^{line}", log, re.MULTILINE), log
    created = purser.purser("fits", namespace, "qp", "create", "--count", "8", "--send-wr", "256", "--send-sge", "4",
                            "--recv-wr", "256", "--detach")
    assert created.returncode == 0, created.stderr


def test_a_pod_whose_queues_are_refused_does_not_start(purser, namespace):
    status = purser.await_pod("refused", namespace, "Failed")["status"]
    log = purser.logs("refused", namespace, "preflight")
    preflight, sidecar = status["initContainerStatuses"]
    assert preflight["state"]["terminated"]["exitCode"] == 3, log
    assert "waiting" in sidecar["state"] and "waiting" in status["containerStatuses"][0]["state"], status
    for line in (r"failure +max_sge +/etc/workload/workload.yaml:4:\d+: groups\[0\]: max_send_sge is 33, rxe0 takes 32",
                 r"failure +budget +queues take .* of a budget of 64 MiB.*: request rdma/wqe-mib: \d+"):
        assert re.search(f"^{line}", log, re.MULTILINE), log
