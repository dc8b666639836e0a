# SPDX-License-Identifier: Apache-2.0
"""The reason for Purser: what a pod within all its limits does to a node, and what becomes of it when it asks the sidecar."""

import conftest
import contrast
from contrast import MIB

BUDGET = 300 * MIB


def test_with_purser_the_application_is_refused_at_its_budget_and_nobody_is_killed(purser, namespace):
    samples, printed = contrast.with_purser(purser, namespace)
    assert "refused: more queue memory than the budget has left" in printed
    assert max(sample.queue_memory for sample in samples) <= BUDGET
    assert samples[-1].queue_memory > BUDGET * 0.9, "it used what it had"
    assert samples[-1].available > 1000 * MIB
    for name, container in (("innocent-neighbour", "idle"), ("queue-hungry-with-purser", "application")):
        status = {c["name"]: c for c in purser.pod(name, namespace)["status"]["containerStatuses"]}[container]
        assert "running" in status["state"] and status["restartCount"] == 0, name
    assert [e["message"] for e in purser.events(namespace, type="Warning")] == []


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
