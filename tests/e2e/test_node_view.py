# SPDX-License-Identifier: Apache-2.0
"""Who holds how much queue memory: what the plugin tells, and `purser node`, against what the kernel has allocated."""

import json

import pytest
from kube import PURSER_NAMESPACE, ROOT, total, value, wait_until
from pods import TEST_IMAGE

# Work requests and SGEs of the queue pairs; the rings of the largest are more than 1 MiB.
SHAPES = [(16, 1), (100, 2), (256, 4), (1024, 16), (4096, 8)]
MIB = 2**20
DECLARED, BEYOND = {"rdma/hca": "1", "rdma/wqe-mib": "200"}, {"rdma/hca": "1", "rdma/wqe-mib": "1"}


def hogs(program, count):
    """A shell command that holds `count` queue pairs of each shape, each in a process of its own, until it is killed."""
    return " ".join(f"{program} rxe0 {count} {wr} {sge} >/dev/null &" for wr, sge in SHAPES) + " wait"


def pod(name, count, limits):
    """A pod that goes around the sidecar: its container opens the device itself."""
    container = {
        "name": "application", "image": TEST_IMAGE, "imagePullPolicy": "Never", "command": ["sh", "-c", hogs("queue_hog", count)],
        "resources": {"limits": limits},
        "securityContext": {"allowPrivilegeEscalation": False, "readOnlyRootFilesystem": True, "runAsNonRoot": True, "runAsUser": 10001,
                            "capabilities": {"drop": ["ALL"]}, "seccompProfile": {"type": "RuntimeDefault"}},
    }
    return {"apiVersion": "v1", "kind": "Pod", "metadata": {"name": name},
            "spec": {"restartPolicy": "Never", "terminationGracePeriodSeconds": 0, "automountServiceAccountToken": False,
                     "containers": [container]}}


@pytest.fixture
def host_process(purser):
    """Starts a process outside pods that holds queue pairs."""
    groups = []

    def start(count):
        command = hogs(f"{ROOT}/build/release/tests/rxe/queue_hog", count)
        groups.append(purser.node(f"setsid sh -c '{command}' </dev/null >/dev/null 2>&1 & echo $!").strip())

    yield start
    for group in groups:
        purser.node(f"kill -- -{group}")


def await_queue_pairs(cluster, count, **owner):
    """Waits until the plugin tells of so many queue pairs of the owner."""
    wait_until(lambda: total(cluster.plugin_metrics(), "purser_node_queue_pairs", **owner) == count, f"{count} queue pairs of {owner}", 60)


def test_the_node_view_equals_the_truth_to_the_byte(purser, namespace, host_process):
    """200 queue pairs of five shapes, of two pods and a process that nobody declared."""
    owners = {
        "declared": {"namespace": namespace, "pod": "declared", "container": "application"},
        "beyond": {"namespace": namespace, "pod": "beyond", "container": "application"},
        "host": {"namespace": "", "pod": "", "container": "host"},
    }
    areas, truth = purser.queue_areas(), {}

    def take(name, count):
        """What the kernel has allocated for the one that came last: one after the other they tell themselves apart."""
        nonlocal areas
        await_queue_pairs(purser, 5 * count, **owners[name])
        before, areas = areas, purser.queue_areas()
        truth[name] = areas - before
        assert truth[name] > 0

    purser.apply(pod("declared", 20, DECLARED), namespace=namespace)
    take("declared", 20)
    purser.apply(pod("beyond", 12, BEYOND), namespace=namespace)
    take("beyond", 12)
    host_process(8)
    take("host", 8)
    print({name: f"{held:,}" for name, held in truth.items()})

    def settled():
        metrics = purser.plugin_metrics()
        own = [value(metrics, "purser_node_queue_memory_bytes", charged_to="node", exactness="exact", device="rxe0", **owner)
               for owner in owners.values()]
        return metrics if own == list(truth.values()) else None

    metrics = wait_until(settled, f"the metrics tell {truth}", 30)
    for owner in owners.values():
        assert not total(metrics, "purser_node_queue_memory_bytes", exactness="estimated", **owner)
    held = {name: total(metrics, "purser_node_queue_memory_bytes", **owner) for name, owner in owners.items()}
    assert held["declared"] <= 200 * MIB
    undeclared = held["beyond"] - MIB + held["host"]
    assert value(metrics, "purser_node_undeclared_queue_memory_bytes", device="rxe0") == undeclared
    for name, units in (("declared", 200), ("beyond", 1)):
        assert value(metrics, "purser_node_allocated_units", resource="rdma/wqe-mib", **owners[name]) == units
    for source in ("netlink", "processes", "mappings", "vmallocinfo", "container_names", "pod_resources"):
        assert value(metrics, "purser_node_view_source_up", source=source) == 1

    check_the_command(purser, owners, truth, undeclared)


def check_the_command(cluster, owners, truth, undeclared):
    """`purser node` in the plugin's pod tells the same."""
    plugin = cluster.plugin_pod()["metadata"]["name"]
    view = json.loads(cluster.execute(plugin, PURSER_NAMESPACE, "device-plugin", "purser", "node", "-o", "json").stdout)
    told = {(holding.get("namespace", ""), holding.get("pod", ""), holding["container"]): holding for holding in view["holdings"]}
    assert int(view["undeclared"]["bytes"]["rxe0"]) == undeclared
    table = cluster.execute(plugin, PURSER_NAMESPACE, "device-plugin", "purser", "node").stdout
    print(table)
    rows = {tuple(row.split()[1:4]): row.split() for row in table.splitlines() if row.startswith("rxe0")}
    for name, owner in owners.items():
        holding = told[owner["namespace"], owner["pod"], owner["container"]]
        assert int(holding["nodeCharged"]["exact"]) == truth[name]
        row = rows[owner["namespace"] or "-", owner["pod"] or "-", owner["container"]]
        assert (row[4], row[6]) == (str(sum(int(pairs["count"]) for pairs in holding["queuePairs"])), f"{truth[name]:,}")
    assert f"{undeclared:,.0f}" in table
