# SPDX-License-Identifier: Apache-2.0
"""Containers as the kubelet and the node have them: processes to kill, what is freed then, who was restarted; the node's status."""

import contextlib
import datetime
import subprocess
import threading

from kube import RESOURCES, ROOT


def seconds_since_epoch(time):
    """Of a time as the API server writes it; whole seconds."""
    return datetime.datetime.fromisoformat(time.rstrip("Z") + "+00:00").timestamp()


def container(cluster, pod, namespace, name):
    """A container's status."""
    status = cluster.pod(pod, namespace)["status"]
    return next(container for container in status.get("initContainerStatuses", []) + status.get("containerStatuses", [])
                if container["name"] == name)


def restarts(cluster, namespace):
    """How often the namespace's containers were restarted: {(pod, container): count}."""
    return {(pod["metadata"]["name"], container["name"]): container["restartCount"]
            for pod in cluster.get("pods", "--namespace", namespace)["items"]
            for kind in ("initContainerStatuses", "containerStatuses") for container in pod["status"].get(kind, [])}


def process(cluster, pod, namespace, name):
    """The pid, on the node, of a container's first process."""
    own = container(cluster, pod, namespace, name)["containerID"].removeprefix("containerd://")
    return int(cluster.node(f"sort -n $(find /sys/fs/cgroup/kubepods -path '*/{own}/cgroup.procs') | head -n 1"))


def measure(cluster, script, timeout=180):
    """Runs a script in bash on the node, at a priority at which the node's own turmoil does not delay its clock; what it prints."""
    return cluster.node("chrt --rr 1 bash -s", stdin=script, timeout=timeout)


@contextlib.contextmanager
def statuses(cluster):
    """Yields a list that fills with what the API server is told of the node: (the kubelet's time, allocatable)."""
    path = "{.status.conditions[?(@.type=='Ready')].lastHeartbeatTime} {.status.allocatable.rdma/hca} {.status.allocatable.rdma/wqe-mib}\n"
    watch = subprocess.Popen([str(ROOT / "tests/e2e/cluster/cluster"), "kubectl", "get", "nodes", "--watch", "-o", "jsonpath=" + path.replace("\n", '{"\\n"}')],
                             stdout=subprocess.PIPE, text=True)
    seen = []

    def read():
        for line in watch.stdout:
            heartbeat, *counts = line.split()
            when = seconds_since_epoch(heartbeat)
            seen.append((when, dict(zip(RESOURCES, map(int, counts)))))

    thread = threading.Thread(target=read)
    thread.start()
    try:
        yield seen
    finally:
        watch.kill()
        thread.join()


def kill_and_await_queue_areas(cluster, pid, queue_bytes):
    """Kills a process with SIGKILL; the seconds until soft-RoCE's queues take no more than that."""
    return float(measure(cluster, f"""
        begin=$EPOCHREALTIME; kill -KILL {pid}
        for ((turn = 0; turn < 600; turn++)); do
          [ "$({ROOT}/tests/rxe/queue_areas | sed -n s/^queue_bytes=//p)" -gt {queue_bytes} ] || break
          sleep 0.1
        done
        awk -v begin=$begin -v end=$EPOCHREALTIME 'BEGIN {{ print end - begin }}'
        """))


def await_end_and_queue_areas(cluster, pid, queue_bytes):
    """Waits until a process has ended and soft-RoCE's queues take no more than that; how many sidecars run then."""
    return int(measure(cluster, f"""
        while kill -0 {pid} 2>/dev/null; do sleep 0.02; done
        for ((turn = 0; turn < 100; turn++)); do
          [ "$({ROOT}/tests/rxe/queue_areas | sed -n s/^queue_bytes=//p)" -gt {queue_bytes} ] || break
        done
        [ "$turn" -lt 100 ] && pidof purser-sidecar | wc -w
        """))
