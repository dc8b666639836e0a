# SPDX-License-Identifier: Apache-2.0
"""The contrast: an application that wants 800 queue pairs of 4096 work requests x 16 SGEs beside a neighbour that wants nothing,
without Purser and with it, as the kernel, the kubelet and the API server see it.

Used by the demonstration (demo/story) and by test_contrast.py.
"""

import dataclasses
import re
import subprocess
import tempfile
import threading

import examples
import pods
from kube import ROOT, wait_until

MIB = 2**20


@dataclasses.dataclass
class Sample:
    """Seconds since the application started; bytes, but where the name says otherwise."""

    seconds: float
    queue_memory: int  # soft-RoCE's queues in the kernel, less those that were there before
    available: int  # the kernel's MemAvailable
    kubelet_available: int  # node.memory.availableBytes of the kubelet's summary: what eviction goes by
    pod_memory: int  # memory.current of the application's pod
    culprit_processes: int  # of queue_hog in that pod
    neighbour_processes: int


def neighbour():
    """A pod that asks for nothing (BestEffort) and does nothing."""
    container = {"name": "idle", "image": pods.TEST_IMAGE, "imagePullPolicy": "Never", "command": ["sleep", "infinity"],
                 "securityContext": pods.snippet()["containers"][0]["securityContext"]}
    return {"apiVersion": "v1", "kind": "Pod", "metadata": {"name": "innocent-neighbour"},
            "spec": {"restartPolicy": "Never", "terminationGracePeriodSeconds": 0, "automountServiceAccountToken": False,
                     "containers": [container]}}


def cgroup(pod, container=None):
    """Where the kubelet's cgroupfs driver puts a pod, or a running container of it."""
    quality = {"Guaranteed": "", "Burstable": "burstable/", "BestEffort": "besteffort/"}[pod["status"]["qosClass"]]
    path = f"/sys/fs/cgroup/kubepods/{quality}pod{pod['metadata']['uid']}"
    if container:
        statuses = {status["name"]: status for status in pod["status"]["containerStatuses"]}
        path += "/" + statuses[container]["containerID"].removeprefix("containerd://")
    return path


@dataclasses.dataclass
class Before:
    """What the node was like."""

    queue_areas: int  # bytes
    kubelet_available: int


def kubelet_available(cluster):
    return cluster.kubelet("/stats/summary")["node"]["memory"]["availableBytes"]


class Watch:
    """Samples in the background, from the node itself and from the kubelet, until it is closed. Each goes to `told`.

    `before`: what was read before the application was there, when the node could still answer.
    """

    def __init__(self, cluster, pod, neighbour_pod, before, told=lambda sample: None):
        self.samples = []
        self._cluster = cluster
        self._told = told
        self._baseline = before.queue_areas
        self._kubelet_available = before.kubelet_available
        self._closed = threading.Event()
        self._errors = tempfile.TemporaryFile("w+")
        self._process = subprocess.Popen(
            [ROOT / "tests/e2e/cluster/cluster", "shell", "chrt", "--rr", "1", ROOT / "tests/e2e/contrast_samples",
             cgroup(pod), cgroup(neighbour_pod, "idle")],
            stdout=subprocess.PIPE, stderr=self._errors, text=True)
        self._threads = [threading.Thread(target=self._read), threading.Thread(target=self._follow_kubelet)]
        for thread in self._threads:
            thread.start()

    def close(self):
        self._closed.set()
        self._process.kill()
        for thread in self._threads:
            thread.join()
        self._errors.close()

    def last(self):
        """The latest sample, None before the first."""
        if self._process.poll() is not None:
            self._errors.seek(0)
            raise RuntimeError(f"what samples the node ended with {self._process.returncode}: {self._errors.read()}")
        return self.samples[-1] if self.samples else None

    def __enter__(self):
        return self

    def __exit__(self, *_):
        self.close()

    def _follow_kubelet(self):
        while not self._closed.wait(1):
            try:
                self._kubelet_available = kubelet_available(self._cluster)
            except OSError:
                pass  # a kubelet without memory does not answer; its last figure stays

    def _read(self):
        started = None
        for line in self._process.stdout:
            microseconds, _, queues, available, memory, culprit, neighbour_processes = map(int, line.split())
            # By the node's clock: what it tells comes late when it has no memory.
            started = started or microseconds
            sample = Sample((microseconds - started) / 1e6, queues - self._baseline, available * 1024, self._kubelet_available, memory,
                            culprit, neighbour_processes)
            self.samples.append(sample)
            self._told(sample)


def beside_a_neighbour(cluster, name, namespace, told):
    """Starts a neighbour, then an example's pod; returns what watches them."""
    cluster.apply(neighbour(), namespace=namespace)
    neighbour_pod = cluster.await_pod("innocent-neighbour", namespace)
    before = Before(cluster.queue_areas(), kubelet_available(cluster))
    cluster.apply(examples.the_object(name), namespace=namespace)
    return Watch(cluster, cluster.pod(name, namespace), neighbour_pod, before, told)


def without_purser(cluster, namespace, told=lambda sample: None, timeout=400):
    """Runs the example that opens the device itself until the neighbour dies, and then ends it (contrast_samples).

    Returns (samples, the neighbour's pod, whom the kernel killed: see killed()).
    """
    begin = float(cluster.node("cat /proc/uptime").split()[0])
    with beside_a_neighbour(cluster, "queue-hungry-without-purser", namespace, told) as watch:
        wait_until(lambda: watch.last() and watch.last().neighbour_processes == 0, "the neighbour is killed", timeout)
        wait_until(lambda: watch.last().queue_memory <= 0, "the kernel has the queues' memory back", 60)
    victim = wait_until(lambda: next((p for p in [cluster.pod("innocent-neighbour", namespace)] if p["status"]["phase"] == "Failed"), None),
                        "the API server knows of the neighbour's death", 120)
    return watch.samples, victim, killed(cluster, begin)


def killed(cluster, begin):
    """Whom the kernel killed for want of memory since that uptime, first to last: [(name, oom_score_adj)]."""
    lines = re.findall(r"\[ *([0-9.]+)\] Out of memory: Killed process (\d+) \((\S+)\).* oom_score_adj:(-?\d+)", cluster.node("dmesg"))
    # The kernel tells each twice.
    each = dict.fromkeys((pid, name, int(score)) for seconds, pid, name, score in lines if float(seconds) > begin)
    return [(name, score) for _, name, score in each]


def with_purser(cluster, namespace, told=lambda sample: None, timeout=400):
    """Runs the example that asks the sidecar for the same, until it was refused. Both pods go on running.

    Returns (samples, what the application printed).
    """
    name = "queue-hungry-with-purser"
    with beside_a_neighbour(cluster, name, namespace, told) as watch:
        printed = wait_until(lambda: next((log for log in [cluster.logs(name, namespace, "application")] if "what to do" in log), None),
                             "the application is refused", timeout)
        count = len(watch.samples)
        wait_until(lambda: watch.last() and len(watch.samples) > count + 4, "what comes after the refusal is seen", 60)
    return watch.samples, printed
