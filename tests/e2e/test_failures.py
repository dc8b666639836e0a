# SPDX-License-Identifier: Apache-2.0
"""Processes of a pod that die: what they held is gone, and the rest goes on."""

import concurrent.futures

import conftest
import node
import pods
import pytest
from kube import total, wait_until

# Holds queue pairs until the sidecar ends, asks a sidecar that is not there, waits for it and asks again.
APPLICATION = """
purser qp create "$@"; echo "exit code $? of who held queue pairs"
purser budget; echo "exit code $? of who asked then"
purser --wait 300 budget; echo "exit code $? of who waited"
"""


def small_pod(name):
    pod = pods.sidecar_pod(name)
    for kind in ("requests", "limits"):
        pods.sidecar_of(pod)["resources"][kind]["memory"] = "12Mi"
    return pod


def pod_with_holder(name):
    """Whose second application holds queue pairs when it is told to."""
    pod = pods.sidecar_pod(name)
    pods.add_container(pod, "holder", ["sh", "-c", "until [ -e /run/purser/begin ]; do sleep 0.2; done; exec purser qp create --count 20"])
    return pod


@pytest.fixture(scope="module")
def namespace(purser):
    """One with a pod for each test, which start together; until its test comes each holds nothing."""
    with conftest.a_namespace(purser, "failures") as name:
        names = ("killed", "out-of-memory", "small", "holder")
        purser.apply(*(make(pod) for make, pod in zip((pods.sidecar_pod, pods.sidecar_pod, small_pod, pod_with_holder), names)), namespace=name)
        for pod in names:
            purser.await_pod(pod, name)
        yield name


def start_application(threads, cluster, pod, namespace, *arguments):
    return threads.submit(cluster.execute, pod, namespace, "application", "sh", "-c", APPLICATION, "sh", *arguments, timeout=600)


def await_queue_pairs(cluster, pod, namespace, count):
    wait_until(lambda: total(cluster.sidecar_metrics(pod, namespace), "purser_queue_pairs") == count, f"{count} queue pairs", 60, interval=1)


def restarts(cluster, pod, namespace):
    """How often the pod's containers were restarted."""
    return {container: count for (name, container), count in node.restarts(cluster, namespace).items() if name == pod}


def application_saw_it(application):
    """UNAVAILABLE to who held queue pairs and to who asked in between, and then a sidecar again."""
    done = application.result()
    for words in ("exit code 1 of who held queue pairs", "exit code 4 of who asked then", "exit code 0 of who waited"):
        assert words in done.stdout, (done.stdout, done.stderr)
    assert "no sidecar answers" in done.stderr, done.stderr


def test_a_killed_sidecar_comes_back(purser, namespace):
    baseline = purser.queue_areas()
    with concurrent.futures.ThreadPoolExecutor() as threads:
        application = start_application(threads, purser, "killed", namespace, "--count", "5")
        await_queue_pairs(purser, "killed", namespace, 5)
        assert purser.queue_areas() > baseline
        freed = node.kill_and_await_queue_areas(purser, node.process(purser, "killed", namespace, "purser-sidecar"), baseline)
        print(f"kernel memory of a killed sidecar's queues was back after {freed:.2f} s")
        application_saw_it(application)
    assert freed < 2
    sidecar_was_restarted(purser, "killed", namespace, reason="Error")
    works_again(purser, "killed", namespace, baseline)


def test_a_sidecar_out_of_memory_comes_back(purser, namespace):
    """Queue pairs cannot bring it about: at 95 % of its limit a sidecar creates no more. So the limit goes from under it."""
    baseline, pid = purser.queue_areas(), node.process(purser, "out-of-memory", namespace, "purser-sidecar")
    others = int(purser.node("pidof purser-sidecar | wc -w")) - 1
    with concurrent.futures.ThreadPoolExecutor() as threads:
        application = start_application(threads, purser, "out-of-memory", namespace, "--count", "20")
        await_queue_pairs(purser, "out-of-memory", namespace, 20)
        sidecars = threads.submit(node.await_end_and_queue_areas, purser, pid, baseline)
        # Less than its anonymous memory, which has nowhere else to go.
        purser.node(f"echo 1M > /sys/fs/cgroup/$(sed s/^0::// /proc/{pid}/cgroup)/memory.max", timeout=60)
        application_saw_it(application)
    assert sidecars.result() == others, "the kernel had the memory back before the next sidecar started"
    sidecar_was_restarted(purser, "out-of-memory", namespace, reason="OOMKilled")
    works_again(purser, "out-of-memory", namespace, baseline)


def test_a_sidecar_near_its_memory_limit_creates_no_more(purser, namespace):
    """Five KiB of its own memory go with each queue pair; enough of them would exceed a limit that is too low."""
    refused = purser.execute("small", namespace, "application", "purser", "qp", "create", "--detach", "--count", "3000", "--send-wr", "1",
                             "--recv-wr", "1", check=False, timeout=300)
    assert refused.returncode == 3 and "container pays, whose memory is" in refused.stderr, refused.stderr
    assert set(restarts(purser, "small", namespace).values()) == {0}
    purser.purser("small", namespace, "qp", "destroy", "--all")


def sidecar_was_restarted(cluster, pod, namespace, reason):
    """By the kubelet, once, and nobody else."""
    wait_until(lambda: node.container(cluster, pod, namespace, "purser-sidecar")["started"], "the sidecar is started", 60)
    last = node.container(cluster, pod, namespace, "purser-sidecar")["lastState"]["terminated"]
    assert (last["reason"], last["exitCode"]) == (reason, 137)
    assert restarts(cluster, pod, namespace) == {"purser-sidecar": 1, "application": 0}


def works_again(cluster, pod, namespace, baseline):
    """The new sidecar holds nothing, and gives what it is asked for."""
    assert cluster.queue_areas() == baseline
    assert total(cluster.sidecar_metrics(pod, namespace), "purser_queue_pairs") == 0
    cluster.purser(pod, namespace, "qp", "create", "--count", "3", "--detach")
    assert len(cluster.queue_pairs(pod, namespace)) == 3
    cluster.purser(pod, namespace, "qp", "destroy", "--all")
    assert cluster.queue_areas() == baseline


def test_queue_pairs_of_a_killed_application_are_gone_within_two_seconds(purser, namespace):
    baseline = purser.queue_areas()
    purser.execute("holder", namespace, "application", "touch", "/run/purser/begin")
    await_queue_pairs(purser, "holder", namespace, 20)
    assert purser.queue_areas() > baseline
    freed = node.kill_and_await_queue_areas(purser, node.process(purser, "holder", namespace, "holder"), baseline)
    print(f"kernel memory of a killed application's queue pairs was back after {freed:.2f} s")
    assert freed < 2
    metrics = purser.sidecar_metrics("holder", namespace)
    assert total(metrics, "purser_queue_pairs") == 0
    assert total(metrics, "purser_queue_memory_bytes") == 0
    assert restarts(purser, "holder", namespace) == {"purser-sidecar": 0, "application": 0, "holder": 0}
