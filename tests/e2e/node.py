# SPDX-License-Identifier: Apache-2.0
"""Containers as the kubelet and the node have them: processes to kill, what is freed then, who was restarted."""

from kube import ROOT


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
