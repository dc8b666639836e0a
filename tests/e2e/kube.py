# SPDX-License-Identifier: Apache-2.0
"""The test cluster as tests see it: the real kubectl and helm, a shell on the node, and waiting."""

import json
import os
import pathlib
import ssl
import subprocess
import time
import urllib.request

import yaml
from prometheus_client.parser import text_string_to_metric_families

ROOT = pathlib.Path(__file__).resolve().parents[2]
STATE = pathlib.Path(os.environ.get("PURSER_CLUSTER_DIR", ROOT / "build/cluster")).absolute()
PURSER_NAMESPACE = "purser-system"
# What the node has of Purser's resources with tests/e2e/values.yaml.
RESOURCES = {"rdma/hca": 100, "rdma/wqe-mib": 1024}


class Failed(AssertionError):
    """A command's failure, with all that it printed."""

    def __init__(self, command, process):
        super().__init__(f"{' '.join(command)}\nexit code {process.returncode}\n{process.stdout}{process.stderr}")
        self.process = process


class Cluster:
    """Calls tests/e2e/cluster/cluster. Each method raises Failed where the command fails, unless it says otherwise."""

    def settings(self):
        """The cluster's ports and directories, as its start chose them."""
        return dict(word.split("=", 1) for word in (STATE / "settings").read_text().split())

    def run(self, *arguments, stdin=None, timeout=180, check=True):
        command = [str(ROOT / "tests/e2e/cluster/cluster"), *map(str, arguments)]
        process = subprocess.run(command, input=stdin, capture_output=True, text=True, timeout=timeout, check=False)
        if check and process.returncode != 0:
            raise Failed(command, process)
        return process

    def kubectl(self, *arguments, **options):
        return self.run("kubectl", *arguments, **options).stdout

    def helm(self, *arguments, **options):
        return self.run("helm", *arguments, **options).stdout

    def node(self, command, **options):
        """Runs a shell command as root on the node; returns what it printed."""
        return self.run("shell", command, **options).stdout

    def get(self, *arguments):
        return json.loads(self.kubectl("get", *arguments, "-o", "json"))

    def apply(self, *objects, namespace):
        self.kubectl("apply", "--namespace", namespace, "-f", "-", stdin=yaml.safe_dump_all(objects))

    def the_node(self):
        return self.get("nodes")["items"][0]

    def resources(self, field="allocatable"):
        """What the node has of Purser's resources: {"rdma/hca": 1000, …}. Once a plugin has served a name the kubelet goes on
        listing it, with 0, so those without capacity are left out."""
        status = self.the_node()["status"]
        return {name: kubernetes_integer(status[field][name]) for name, capacity in status["capacity"].items()
                if name.startswith("rdma/") and kubernetes_integer(capacity) > 0}

    def pod(self, name, namespace):
        return self.get("pod", name, "--namespace", namespace)

    def events(self, namespace, **fields):
        """The namespace's events whose fields are as given, such as type="Warning"."""
        return [event for event in self.get("events", "--namespace", namespace)["items"]
                if all(event.get(field) == value for field, value in fields.items())]

    def warnings(self, namespace):
        """Messages of the namespace's Warning events, but for probes: under emulation a program can take seconds to answer."""
        return [event["message"] for event in self.events(namespace, type="Warning") if event["reason"] != "Unhealthy"]

    def logs(self, pod, namespace, container, *arguments):
        return self.kubectl("logs", pod, "--namespace", namespace, "--container", container, *arguments)

    def execute(self, pod, namespace, container, *command, **options):
        """Runs a command in a container; returns the finished process (options: check=False, …)."""
        return self.run("kubectl", "exec", pod, "--namespace", namespace, "--container", container, "--", *command, **options)

    def purser(self, pod, namespace, *arguments, **options):
        """Runs `purser` in the pod's application container; returns the finished process."""
        return self.execute(pod, namespace, "application", "purser", *arguments, **options)

    def queue_pairs(self, pod, namespace):
        """The pod's queue pairs as its sidecar lists them: [(id, qp_num)]."""
        listed = json.loads(self.purser(pod, namespace, "qp", "list", "-o", "json").stdout)
        return sorted((pair["id"], pair["qpNum"]) for pair in listed.get("queuePairs", []))

    def await_pod(self, name, namespace, phase="Running", timeout=300):
        """Waits until a pod is Running with all containers ready, or has ended as Succeeded or Failed; returns it."""

        def there():
            pod = self.pod(name, namespace)
            status = pod["status"]
            if status["phase"] != phase and status["phase"] in ("Succeeded", "Failed"):
                raise AssertionError(f"pod {name} is {status['phase']}, not {phase}: {status.get('message', '')}")
            ready = phase != "Running" or all(container["ready"] for container in status.get("containerStatuses", [{"ready": False}]))
            return pod if status["phase"] == phase and ready else None

        return wait_until(there, f"pod {namespace}/{name} is {phase}", timeout)

    def scrape(self, address):
        """The metrics of an HTTP endpoint that the node reaches, "10.244.0.3:9837": {(name, frozenset(labels)): value}."""
        text = self.node(f"curl -sf --max-time 10 http://{address}/metrics")
        return {(sample.name, frozenset(sample.labels.items())): sample.value
                for family in text_string_to_metric_families(text) for sample in family.samples}

    def sidecar_metrics(self, pod, namespace):
        return self.scrape(self.pod(pod, namespace)["status"]["podIP"] + ":9837")

    def plugin_pod(self):
        pods = [pod for pod in self.get("pods", "--namespace", PURSER_NAMESPACE, "-l", "app.kubernetes.io/component=device-plugin")["items"]
                if "deletionTimestamp" not in pod["metadata"]]
        return pods[0] if len(pods) == 1 else None

    def plugin_metrics(self):
        return self.scrape(self.plugin_pod()["status"]["podIP"] + ":9836")

    def kubelet(self, path):
        """What the kubelet itself answers, as administrator: /stats/summary, /pods. The API server passes nothing on to the
        loopback address at which it has this node. Raises OSError when the kubelet does not answer."""
        keys = STATE / "pki"
        context = ssl.create_default_context(cafile=keys / "ca.crt")
        context.load_cert_chain(keys / "admin.crt", keys / "admin.key")
        with urllib.request.urlopen(f"https://127.0.0.1:{self.settings()['kubelet_port']}{path}", context=context, timeout=20) as answer:
            return json.load(answer)

    def queue_areas(self):
        """Bytes of soft-RoCE's queues in the kernel, the driver's own included (tests/rxe/queue_areas --help)."""
        return int(dict(line.split("=") for line in self.node(f"{ROOT}/tests/rxe/queue_areas").split())["queue_bytes"])


def value(metrics, name, **labels):
    """The value of the one series of that name that has these labels (and perhaps others); None where there is none."""
    found = [number for (series, own), number in metrics.items() if series == name and labels.items() <= dict(own).items()]
    assert len(found) <= 1, f"{len(found)} series of {name} with {labels}"
    return found[0] if found else None


def total(metrics, name, **labels):
    """The sum of all series of that name that have these labels."""
    return sum(number for (series, own), number in metrics.items() if series == name and labels.items() <= dict(own).items())


def kubernetes_integer(text):
    """The API server writes 1000 as 1k."""
    suffixes = {"k": 10**3, "M": 10**6, "Ki": 2**10, "Mi": 2**20, "Gi": 2**30}
    for suffix, factor in sorted(suffixes.items(), key=lambda item: -len(item[0])):
        if text.endswith(suffix):
            return int(text[: -len(suffix)]) * factor
    return int(text)


def wait_until(condition, what, timeout, interval=0.25):
    """Asks until the condition gives something true; returns that. A condition may raise Failed meanwhile."""
    end = time.monotonic() + timeout
    last = None
    while time.monotonic() < end:
        try:
            last = condition()
            if last:
                return last
        except Failed as failure:
            last = failure
        time.sleep(interval)
    raise AssertionError(f"not within {timeout} s: {what}; last seen: {last}")
