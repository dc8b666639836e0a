# SPDX-License-Identifier: Apache-2.0
"""A pod with a sidecar and an application that has neither device nor capability."""

import pods
from kube import total, value

BUDGET = 64 * 2**20


def test_the_budget_is_what_the_plugin_allotted(purser, namespace):
    purser.apply(pods.sidecar_pod("app"), namespace=namespace)
    purser.await_pod("app", namespace)
    metrics = purser.sidecar_metrics("app", namespace)
    assert value(metrics, "purser_queue_memory_budget_bytes", source="plugin", charged_to="node") == BUDGET
    assert value(metrics, "purser_queue_memory_headroom_bytes", source="plugin", charged_to="node") == BUDGET
    assert total(metrics, "purser_queue_pairs") == 0

    # Of the node's devices the application has none, and of capabilities none.
    seen = purser.execute("app", namespace, "application", "sh", "-c", "ls /dev; grep Cap /proc/self/status").stdout
    assert "null" in seen and "infiniband" not in seen and "CapEff:\t0000000000000000" in seen and "CapBnd:\t0000000000000000" in seen, seen

    before = purser.queue_areas()
    created = purser.execute("app", namespace, "application",
                             "purser", "qp", "create", "--count", "3", "--send-wr", "256", "--send-sge", "4", "--detach")
    assert created.returncode == 0, created.stdout
    metrics = purser.sidecar_metrics("app", namespace)
    assert total(metrics, "purser_queue_pairs", type="RC") == 3
    assert purser.queue_areas() > before

    # More than fits: refused at the first that does not, with its arithmetic.
    refused = purser.execute("app", namespace, "application", "purser", "qp", "create", "--count", "100",
                             "--send-wr", "4096", "--send-sge", "16", "--detach", check=False)
    assert refused.returncode == 3
    for words in ("refused: more queue memory than the budget has left", "send ring", "67,108,864", "bound: plugin", "rdma/wqe-mib"):
        assert words in refused.stderr, refused.stderr
    metrics = purser.sidecar_metrics("app", namespace)
    used = total(metrics, "purser_queue_memory_bytes", charged_to="node")
    assert 0 < used <= BUDGET
    assert total(metrics, "purser_admissions_total", result="refused", reason="budget") == 1

    assert purser.execute("app", namespace, "application", "purser", "qp", "destroy", "--all").returncode == 0
    assert purser.queue_areas() == before
    metrics = purser.sidecar_metrics("app", namespace)
    assert total(metrics, "purser_queue_pairs") == 0
    assert total(metrics, "purser_queue_memory_bytes") == 0

    status = purser.pod("app", namespace)["status"]
    assert [c["restartCount"] for c in status["initContainerStatuses"] + status["containerStatuses"]] == [0, 0]
    assert [e["message"] for e in purser.events(namespace, type="Warning")] == []
