# SPDX-License-Identifier: Apache-2.0
"""manifests/examples as they are. (The ping pairs: test_data.py; the application without Purser: test_contrast.py.)"""

import conftest
import examples
from kube import total, value, wait_until

MIB = 2**20
OTHERS = {"ping-pair", "ping-pair-host-network", "queue-hungry-without-purser"}


def test_every_example_is_run_by_a_test():
    run_here = {"too-large-job", "queue-hungry-with-purser", "sidecar-snippet"}
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
    pods = purser.get("pods", "--namespace", namespace)["items"]
    assert [pod["status"]["phase"] for pod in pods] == ["Pending"]
    assert "nodeName" not in pods[0]["spec"]
    assert purser.resources() == before


def out_of_memory_kills(cluster):
    return int(cluster.node("awk '$1 == \"oom_kill\" { print $2 }' /proc/vmstat"))


def test_a_queue_hungry_application_is_refused_at_its_budget_and_goes_on(purser, namespace, record_property):
    """300 MiB of the node's memory, then the refusal; the application keeps what it has, and its neighbour notices nothing."""
    conftest.await_quiet(purser)
    budget = 300 * MIB
    kills, areas = out_of_memory_kills(purser), purser.queue_areas()
    purser.kubectl("apply", "--namespace", namespace, "-f", examples.DIRECTORY / "sidecar-snippet.yaml")
    purser.kubectl("apply", "--namespace", namespace, "-f", examples.DIRECTORY / "queue-hungry-with-purser.yaml")
    hungry = "queue-hungry-with-purser"
    purser.await_pod(hungry, namespace)

    # What else runs here: the snippet's Deployment, whose application holds eight queue pairs.
    wait_until(lambda: purser.get("deployment", "rdma-app", "--namespace", namespace)["status"].get("readyReplicas"),
               "the snippet's Deployment is ready", 300)
    neighbour = purser.get("pods", "--namespace", namespace, "-l", "app=rdma-app")["items"][0]["metadata"]["name"]
    wait_until(lambda: total(purser.sidecar_metrics(neighbour, namespace), "purser_queue_pairs") == 8,
               "the snippet's application has its queue pairs", 60)

    most = areas
    def refused():
        nonlocal most
        most = max(most, purser.queue_areas())
        return "refused:" in purser.logs(hungry, namespace, "application")

    wait_until(refused, "the application is refused", 240, interval=1)
    log = purser.logs(hungry, namespace, "application")
    for words in ("more queue memory than the budget has left", "send ring", "budget", f"{budget:,}", "bound: plugin",
                  "largest max_send_wr that fits now", "request 2 more units of rdma/wqe-mib", "holding 55 queue pairs"):
        assert words in log, log

    neighbours = value(purser.sidecar_metrics(neighbour, namespace), "purser_queue_memory_headroom_bytes",
                       source="plugin", charged_to="node")
    neighbours = 64 * MIB - neighbours
    metrics = purser.sidecar_metrics(hungry, namespace)
    held = total(metrics, "purser_queue_pairs")
    used = total(metrics, "purser_queue_memory_bytes", charged_to="node")
    most = max(most, purser.queue_areas())
    record_property("queue pairs held", held)
    record_property("queue areas", most - areas)
    print(f"{held:.0f} queue pairs, {used:.0f} bytes used, areas grew by {most - areas} ({neighbours:.0f} of them the neighbour's)")
    assert held == 55
    assert used <= budget < used + 6.1 * MIB
    assert 0.9 * used < most - areas <= budget + neighbours
    assert total(metrics, "purser_admissions_total", result="refused", reason="budget") == 1

    # It goes on: shallower queue pairs still fit, and the sidecar says what is left.
    shown = purser.execute(hungry, namespace, "application", "purser", "budget").stdout
    assert "* " in shown and "plugin" in shown, shown
    created = purser.execute(hungry, namespace, "application", "purser", "qp", "create", "--send-wr", "16", "--detach")
    assert created.returncode == 0

    for name in (hungry, neighbour):
        pod = purser.pod(name, namespace)
        assert [c["restartCount"] for c in pod["status"]["initContainerStatuses"] + pod["status"]["containerStatuses"]] == [0, 0]
    assert total(purser.sidecar_metrics(neighbour, namespace), "purser_queue_pairs") == 8
    assert out_of_memory_kills(purser) == kills
    assert purser.warnings(namespace) == []

    # With the pods their queues are gone.
    purser.kubectl("delete", "deployment", "--all", "--namespace", namespace)
    purser.kubectl("delete", "pod", "--all", "--namespace", namespace, "--now", "--wait", "--timeout=300s", timeout=330)
    wait_until(lambda: purser.queue_areas() == areas, "the node has its memory back", 10)
