# SPDX-License-Identifier: Apache-2.0
"""What the node has to give, and what the scheduler makes of it."""

import datetime

import pods
from kube import PURSER_NAMESPACE, RESOURCES, wait_until


def test_capacity_is_there_five_seconds_after_the_plugin_runs(purser):
    purser.kubectl("delete", "pod", purser.plugin_pod()["metadata"]["name"], "--namespace", PURSER_NAMESPACE)
    wait_until(purser.plugin_pod, "there is one plugin pod", 30)
    pod = purser.await_pod(wait_until(purser.plugin_pod, "there is a plugin pod", 30)["metadata"]["name"], PURSER_NAMESPACE)
    started = datetime.datetime.fromisoformat(pod["status"]["containerStatuses"][0]["state"]["running"]["startedAt"].rstrip("Z") + "+00:00")
    wait_until(lambda: purser.resources("allocatable") == RESOURCES, "allocatable", 5)
    assert purser.resources("capacity") == RESOURCES
    assert (datetime.datetime.now(datetime.timezone.utc) - started).total_seconds() < 20


def test_more_than_is_left_waits_until_there_is_room(purser, namespace):
    purser.apply(pods.sidecar_pod("first", units=1000), pods.sidecar_pod("second", units=25), namespace=namespace)
    purser.await_pod("first", namespace)

    def refused():
        return [e for e in purser.events(namespace, reason="FailedScheduling") if "Insufficient rdma/wqe-mib" in e["message"]]

    wait_until(refused, "the scheduler says why it waits", 30)
    assert purser.pod("second", namespace)["status"]["phase"] == "Pending"
    purser.kubectl("delete", "pod", "first", "--namespace", namespace)
    purser.await_pod("second", namespace)
