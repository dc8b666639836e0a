# SPDX-License-Identifier: Apache-2.0
"""Scraping, alerts and the dashboard."""

import json
import os
import re
import subprocess
import tempfile
import unittest

import yaml

from chart import CHART, MONITORING, PROMTOOL, ROOT, helm, of_kind, render


class Monitoring(unittest.TestCase):
    def promtool(self, *arguments):
        done = subprocess.run([PROMTOOL, *arguments], capture_output=True, text=True)
        self.assertEqual(done.returncode, 0, done.stdout + done.stderr)

    def configure(self, directory, text):
        return subprocess.run([os.path.join(ROOT, "tests/e2e/prometheus_config"), directory], input=text, capture_output=True,
                              text=True)

    def test_alerts(self):
        self.promtool("check", "rules", os.path.join(CHART, "rules/purser.yaml"))
        self.promtool("test", "rules", os.path.join(ROOT, "tests/chart/rules_test.yaml"))

    def test_each_alert_is_documented(self):
        with open(os.path.join(CHART, "rules/purser.yaml"), encoding="utf-8") as file:
            alerts = {rule["alert"] for group in yaml.safe_load(file)["groups"] for rule in group["rules"]}
        with open(os.path.join(ROOT, "docs/operations.md"), encoding="utf-8") as file:
            documented = set(re.findall(r"^\| `(Purser\w+)` \|", file.read(), re.MULTILINE))
        self.assertEqual(alerts, documented)

    def test_prometheus_takes_what_the_monitors_become(self):
        with tempfile.TemporaryDirectory() as directory:
            done = self.configure(directory, helm("template", "purser", CHART, "--set", MONITORING).stdout)
            self.assertEqual(done.returncode, 0, done.stderr)
            with open(os.path.join(directory, "pods.json"), "w", encoding="utf-8") as file:
                file.write("[]")
            self.promtool("check", "config", os.path.join(directory, "prometheus.yml"))
            with open(os.path.join(directory, "prometheus.yml"), encoding="utf-8") as file:
                jobs = yaml.safe_load(file)["scrape_configs"]
        # What pods say of themselves is not believed.
        self.assertEqual([job["honor_labels"] for job in jobs], [True, False])
        self.assertEqual([rule["replacement"] for job in jobs for rule in job["relabel_configs"] if rule.get("target_label") == "job"][1::2],
                         ["purser-device-plugin", "purser-sidecar"])

    def test_a_monitor_that_cannot_be_translated_is_refused(self):
        text = helm("template", "purser", CHART, "--set", MONITORING).stdout
        with tempfile.TemporaryDirectory() as directory:
            done = self.configure(directory, text.replace('interval: "30s"', 'interval: "30s"\n      scrapeTimeout: 5s'))
            self.assertIn("scrapeTimeout, which is not translated", done.stderr)
            self.assertIn("no PodMonitor on standard input", self.configure(directory, "").stderr)

    def test_each_metric_that_is_asked_for_exists(self):
        exported = set()
        for name in ("sidecar/metrics.cc", "sidecar/queue_metrics.cc", "plugin/metrics.cc", "plugin/config_status.cc", "node_view/metrics.cc"):
            with open(os.path.join(ROOT, name), encoding="utf-8") as file:
                exported |= set(re.findall(r'"(purser_\w+)"', file.read()))
        for name in ("dashboards/purser.json", "rules/purser.yaml"):
            with open(os.path.join(CHART, name), encoding="utf-8") as file:
                asked = set(re.findall(r"\bpurser_\w+", file.read()))
            self.assertTrue(asked)
            self.assertFalse(asked - exported, name)

    def test_the_dashboard_is_whole(self):
        config_map = of_kind(render("--set", MONITORING), "ConfigMap", "purser-dashboard")
        self.assertEqual(config_map["metadata"]["labels"]["grafana_dashboard"], "1")
        dashboard = json.loads(config_map["data"]["purser.json"])
        panels = [panel for panel in dashboard["panels"] if panel["type"] != "row"]
        self.assertEqual(len({panel["id"] for panel in dashboard["panels"]}), len(dashboard["panels"]))
        for panel in panels:
            with self.subTest(panel["title"]):
                self.assertTrue(panel["description"])
                self.assertEqual(panel["datasource"]["uid"], "${datasource}")
                for target in panel["targets"]:
                    self.assertEqual(target["datasource"]["uid"], "${datasource}")
        taken = [(x, y) for panel in dashboard["panels"] for x in range(panel["gridPos"]["x"], panel["gridPos"]["x"] + panel["gridPos"]["w"])
                 for y in range(panel["gridPos"]["y"], panel["gridPos"]["y"] + panel["gridPos"]["h"])]
        self.assertEqual(len(taken), len(set(taken)), "panels overlap")
