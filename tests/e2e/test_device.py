# SPDX-License-Identifier: Apache-2.0
"""The RDMA device: its port goes down and up, it is removed and comes back."""

import concurrent.futures
import time

import conftest
import node
import pods
import pytest
from kube import RESOURCES, total, value, wait_until

NONE = {}  # those with capacity
UNTOUCHED = {("app", "purser-sidecar"): 0, ("app", "application"): 0}


@pytest.fixture(scope="module")
def app(purser):
    """A pod that waits for commands; its namespace."""
    with conftest.a_namespace(purser, "device") as name:
        purser.apply(pods.sidecar_pod("app"), namespace=name)
        purser.await_pod("app", name)
        yield name


def await_resources(cluster, resources, what):
    """Returns the seconds that it took, as the API server's clients see it."""
    begin = time.monotonic()
    wait_until(lambda: cluster.resources() == resources, what, 60)
    return time.monotonic() - begin


def check_that_it_works(cluster, namespace):
    """Two new queue pairs exchange data through the device, and are gone afterwards."""
    ping = "purser qp ping --listen 127.0.0.1:7471 & purser qp ping --connect 127.0.0.1:7471 --iterations 10 && wait $!"
    assert "verified" in cluster.execute("app", namespace, "application", "sh", "-c", ping).stdout


def test_health_follows_the_port(purser, app):
    purser.purser("app", app, "qp", "create", "--count", "2", "--detach")
    before = purser.queue_pairs("app", app)
    assert len(before) == 2
    purser.node("ip link set dummy0 down")
    try:
        took = await_resources(purser, {"rdma/hca": 0, "rdma/wqe-mib": 1024}, "no share is allocatable while the port is down")
        print(f"allocatable followed the port down after {took:.1f} s")
        assert purser.resources("capacity") == RESOURCES
        metrics = purser.plugin_metrics()
        assert value(metrics, "purser_port_up", device="rxe0", port="1") == 0
        assert value(metrics, "purser_device_healthy", device="rxe0") == 0
        assert value(metrics, "purser_device_healthy", device="rxe0", reason="port_down") == 0
        assert purser.queue_pairs("app", app) == before
    finally:
        purser.node("ip link set dummy0 up")
    took = await_resources(purser, RESOURCES, "all is allocatable again")
    print(f"allocatable followed the port up after {took:.1f} s")
    assert value(purser.plugin_metrics(), "purser_port_up", device="rxe0", port="1") == 1
    assert purser.queue_pairs("app", app) == before
    check_that_it_works(purser, app)
    purser.purser("app", app, "qp", "destroy", "--all")
    assert node.restarts(purser, app) == UNTOUCHED


def test_a_device_is_removed_under_queue_pairs_and_comes_back(purser, app):
    plugin = purser.plugin_pod()
    with concurrent.futures.ThreadPoolExecutor() as threads:
        holding = threads.submit(purser.purser, "app", app, "qp", "create", "--count", "50", check=False)
        wait_until(lambda: total(purser.sidecar_metrics("app", app), "purser_queue_pairs") == 50, "fifty queue pairs", 60)
        try:
            took = float(purser.node("begin=$EPOCHREALTIME; timeout 60 rdma link delete rxe0; code=$?;"
                                     "echo $begin $EPOCHREALTIME | awk '{ print $2 - $1 }'; exit $code"))
            print(f"the removal under fifty queue pairs returned after {took:.1f} s")
            assert took < 2
            withdrawn = await_resources(purser, NONE, "the node has nothing of it any more")
            print(f"it was withdrawn {withdrawn:.1f} s later")
            assert purser.resources("capacity") == NONE
            held = holding.result()
            assert (held.returncode, "device rxe0 is gone" in held.stderr) == (1, True), held.stderr
            refused = purser.purser("app", app, "qp", "create", check=False)
            assert refused.returncode == 1 and "rxe0 was removed" in refused.stderr, refused.stderr
            assert purser.queue_areas() == 0
            assert total(purser.sidecar_metrics("app", app), "purser_queue_memory_bytes") == 0
            assert node.restarts(purser, app) == UNTOUCHED
        finally:
            purser.node("[ -e /sys/class/infiniband/rxe0 ] || rdma link add rxe0 type rxe netdev dummy0")
    took = await_resources(purser, RESOURCES, "all is allocatable again")
    print(f"it was back after {took:.1f} s")
    check_that_it_works(purser, app)
    assert node.restarts(purser, app) == UNTOUCHED
    after = purser.plugin_pod()
    assert after["metadata"]["uid"] == plugin["metadata"]["uid"]
    assert after["status"]["containerStatuses"][0]["restartCount"] == plugin["status"]["containerStatuses"][0]["restartCount"]
