# SPDX-License-Identifier: Apache-2.0
"""What the node has to give, and what the scheduler makes of it."""

import examples
import node
import pods
from kube import PURSER_NAMESPACE, RESOURCES, wait_until

# Run by test_data.py, test_contrast.py and test_prometheus.py.
OTHERS = {"ping-pair", "ping-pair-host-network", "queue-hungry-with-purser", "queue-hungry-without-purser", "sidecar-snippet"}


def test_capacity_is_there_five_seconds_after_the_plugin_runs(purser):
    old = purser.plugin_pod()["metadata"]["name"]
    with node.statuses(purser) as statuses:
        purser.kubectl("delete", "pod", old, "--namespace", PURSER_NAMESPACE)
        new = wait_until(lambda: (pod := purser.plugin_pod()) and pod["metadata"]["name"] != old and pod, "there is a new plugin pod", 30)
        pod = purser.await_pod(new["metadata"]["name"], PURSER_NAMESPACE)
        running = node.seconds_since_epoch(pod["status"]["containerStatuses"][0]["state"]["running"]["startedAt"])
        # Both times are whole seconds: the container started within the one second, the status was told within the other.
        there = wait_until(lambda: next((when for when, counts in list(statuses) if when >= running and counts == RESOURCES), None), "allocatable", 30)
    print(f"allocatable was there in the second that began {there - running:.0f} s after that in which the plugin started")
    assert there - running <= 5
    assert purser.resources("capacity") == RESOURCES


def test_more_than_is_left_waits_until_there_is_room(purser, namespace):
    purser.apply(pods.sidecar_pod("first", units=1000), pods.sidecar_pod("second", units=25), namespace=namespace)
    purser.await_pod("first", namespace)

    def refused():
        return [e for e in purser.events(namespace, reason="FailedScheduling") if "Insufficient rdma/wqe-mib" in e["message"]]

    wait_until(refused, "the scheduler says why it waits", 30)
    assert purser.pod("second", namespace)["status"]["phase"] == "Pending"
    purser.kubectl("delete", "pod", "first", "--namespace", namespace, "--now")
    purser.await_pod("second", namespace)


def test_every_example_is_run_by_a_test():
    run_here = {"too-large-job"}
    assert {path.stem for path in examples.DIRECTORY.glob("*.yaml")} == run_here | OTHERS


def test_a_job_that_asks_for_more_than_the_node_has_stays_pending(purser, namespace):
    before = purser.resources()
    purser.kubectl("apply", "--namespace", namespace, "-f", examples.DIRECTORY / "too-large-job.yaml")

    def told():
        return [e for e in purser.events(namespace, reason="FailedScheduling", type="Warning")
                if "Insufficient rdma/wqe-mib" in e["message"]]

    wait_until(told, "an event says why the Job's pod is not scheduled", 60)
    described = purser.kubectl("describe", "pod", "--namespace", namespace, "--selector", "job-name=too-large")
    assert "FailedScheduling" in described and "Insufficient rdma/wqe-mib" in described, described
    waiting = purser.get("pods", "--namespace", namespace)["items"]
    assert [pod["status"]["phase"] for pod in waiting] == ["Pending"]
    assert "nodeName" not in waiting[0]["spec"]
    assert purser.resources() == before
