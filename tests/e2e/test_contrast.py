# SPDX-License-Identifier: Apache-2.0
"""The reason for Purser: what a pod within all its limits does to a node, and what becomes of it when it asks the sidecar."""

import conftest
import contrast
from contrast import MIB
from kube import total

BUDGET = 300 * MIB


def out_of_memory_kills(cluster):
    return int(cluster.node("awk '$1 == \"oom_kill\" { print $2 }' /proc/vmstat"))


def test_with_purser_the_application_is_refused_at_its_budget_and_goes_on(purser, namespace, record_property):
    """300 MiB of the node's memory, then the refusal; the application keeps what it has, and its neighbour notices nothing."""
    kills = out_of_memory_kills(purser)
    samples, printed = contrast.with_purser(purser, namespace)
    hungry = "queue-hungry-with-purser"
    for words in ("refused: more queue memory than the budget has left", "send ring", "budget", f"{BUDGET:,}", "bound: plugin",
                  "largest max_send_wr that fits now", "request 2 more units of rdma/wqe-mib", "holding 55 queue pairs"):
        assert words in printed, printed
    metrics = purser.sidecar_metrics(hungry, namespace)
    held = total(metrics, "purser_queue_pairs")
    used = total(metrics, "purser_queue_memory_bytes", charged_to="node")
    most = max(sample.queue_memory for sample in samples)
    record_property("queue pairs held", held)
    record_property("queue areas", most)
    print(f"{held:.0f} queue pairs, {used:.0f} bytes used, areas grew by {most}")
    assert held == 55
    assert used <= BUDGET < used + 6.1 * MIB
    assert 0.9 * used < most <= BUDGET
    assert samples[-1].queue_memory > BUDGET * 0.9, "it used what it had"
    assert samples[-1].available > 1000 * MIB
    assert total(metrics, "purser_admissions_total", result="refused", reason="budget") == 1

    # It goes on: shallower queue pairs still fit, and the sidecar says what is left.
    shown = purser.execute(hungry, namespace, "application", "purser", "budget").stdout
    assert "* " in shown and "plugin" in shown, shown
    assert purser.execute(hungry, namespace, "application", "purser", "qp", "create", "--send-wr", "16", "--detach").returncode == 0

    for name in (hungry, "innocent-neighbour"):
        status = purser.pod(name, namespace)["status"]
        for container in status.get("initContainerStatuses", []) + status["containerStatuses"]:
            assert "running" in container["state"] and container["restartCount"] == 0, name
    assert out_of_memory_kills(purser) == kills
    assert purser.warnings(namespace) == []


def test_without_purser_the_neighbour_dies_while_the_kubelets_figure_does_not_move(purser, namespace):
    conftest.await_quiet(purser)
    samples, neighbour, killed = contrast.without_purser(purser, namespace)
    alive = [sample for sample in samples if sample.neighbour_processes]
    # The kernel has lost what the kubelet still believes to have.
    assert alive[-1].queue_memory > 1000 * MIB
    assert alive[-1].available < alive[0].available - 1000 * MIB
    assert abs(alive[-1].kubelet_available - alive[0].kubelet_available) < 200 * MIB
    assert max(sample.pod_memory for sample in samples) < 100 * MIB, "it kept within its limit"
    # The neighbour first (137; 255 when the container runtime was killed, too, and did not see it).
    print("killed by the kernel: " + ", ".join(f"{name} ({score})" for name, score in killed))
    assert killed[0] == ("sleep", 1000)
    assert neighbour["status"]["containerStatuses"][0]["state"]["terminated"]["exitCode"] in (137, 255)
    assert not [e for e in purser.events(namespace) if e["reason"] == "Evicted"], "no eviction: Kubernetes saw nothing"
    conditions = {c["type"]: c["status"] for c in purser.the_node()["status"]["conditions"]}
    assert conditions["MemoryPressure"] == "False"
