# SPDX-License-Identifier: Apache-2.0
"""Debian's Prometheus as a process on the node, since pod networks are reached from there alone; configured by the chart's own
PodMonitors and PrometheusRules (prometheus_config), its targets found at the API server (prometheus_targets)."""

import json
import subprocess
import urllib.parse
import urllib.request

from kube import PURSER_NAMESPACE, ROOT, STATE, wait_until

E2E = ROOT / "tests/e2e"
# Seen by the node at the same path.
DIRECTORY = STATE / "prometheus"
DATA = "/var/lib/node/prometheus"


def program(name):
    return subprocess.run([E2E / "unpacked", "prometheus", f"usr/bin/{name}"], capture_output=True, text=True, check=True).stdout.strip()


def promtool(*arguments, stdin=None):
    return subprocess.run([program("promtool"), *map(str, arguments)], input=stdin, capture_output=True, text=True, check=False)


class Prometheus:
    """Runs from start() to stop(); everything that it made is gone then."""

    def __init__(self, cluster, interval="3s"):
        self.cluster = cluster
        self.interval = interval
        self.targets = None
        self.pid = None
        self.url = f"http://127.0.0.1:{cluster.settings()['prometheus_port']}"

    def start(self):
        DIRECTORY.mkdir(exist_ok=True)
        monitoring = self.cluster.helm("template", "purser", ROOT / "charts/purser", "--namespace", PURSER_NAMESPACE,
                                       "--set", "podMonitor.enabled=true,prometheusRule.enabled=true")
        subprocess.run([E2E / "prometheus_config", "--interval", self.interval, DIRECTORY], input=monitoring, text=True, check=True)
        pki = STATE / "pki"
        self.targets = subprocess.Popen([E2E / "prometheus_targets", "--api-server", f"https://127.0.0.1:{self.cluster.settings()['api_port']}",
                                         "--ca", pki / "ca.crt", "--certificate", pki / "admin.crt", "--key", pki / "admin.key",
                                         DIRECTORY / "pods.json"])
        self.pid = int(self.cluster.node(
            f"setsid {program('prometheus')} --config.file={DIRECTORY}/prometheus.yml --storage.tsdb.path={DATA} "
            f"--web.listen-address=:9090 >{DIRECTORY}/log 2>&1 </dev/null & echo $!"))
        wait_until(self.is_ready, f"Prometheus is ready; its log is {DIRECTORY}/log", 120)

    def stop(self):
        if self.targets is not None:
            self.targets.kill()
            self.targets.wait()
        if self.pid is not None:
            self.cluster.node(f"kill {self.pid}; while kill -0 {self.pid} 2>/dev/null; do sleep 0.2; done; rm -rf {DATA}")
        for path in DIRECTORY.iterdir():
            path.unlink()
        DIRECTORY.rmdir()

    def is_ready(self):
        try:
            with urllib.request.urlopen(f"{self.url}/-/ready", timeout=5) as answer:
                return answer.status == 200
        except OSError:
            return False

    def api(self, path, **parameters):
        """The data that Prometheus' HTTP API answers."""
        with urllib.request.urlopen(f"{self.url}/api/v1/{path}?{urllib.parse.urlencode(parameters)}", timeout=30) as answer:
            return json.load(answer)["data"]

    def query(self, expression):
        """The samples of an instant query: [(labels, value)]."""
        return [(sample["metric"], float(sample["value"][1])) for sample in self.api("query", query=expression)["result"]]

    def dashboard_queries(self, wait):
        """Runs every query of the dashboard until each has data; returns the finished process."""
        return subprocess.run([E2E / "dashboard_queries", "--url", self.url, "--rate-interval", "2m", "--wait", str(wait)],
                              capture_output=True, text=True, check=False)
