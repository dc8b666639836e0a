# SPDX-License-Identifier: Apache-2.0
"""What is made from the chart, or must be like it."""

import os
import subprocess
import tempfile
import unittest

from chart import CHART, HELM, MONITORING, ROOT, helm, pod_specs, render, sidecar


class Made(unittest.TestCase):
    def test_manifests_are_those_of_the_chart(self):
        with tempfile.TemporaryDirectory() as directory:
            subprocess.run([os.path.join(ROOT, "manifests/render"), directory], check=True, env={**os.environ, "HELM": HELM})
            for name in sorted(os.listdir(directory)):
                done = subprocess.run(["diff", "-u", os.path.join(ROOT, "manifests", name), os.path.join(directory, name)],
                                      capture_output=True, text=True)
                self.assertEqual(done.stdout, "", f"manifests/{name} differs from the chart: run ./dev manifests")

    def test_examples_have_the_sidecar_of_the_template(self):
        for name, spec in pod_specs():
            found = next((c for c in spec.get("initContainers", []) if c["name"] == "purser-sidecar"), None)
            if found is None:
                continue
            with self.subTest(name):
                reserved = any("fraction" in a for a in found["args"])
                expected = sidecar(queueMemoryMiB=int(found["resources"]["limits"]["rdma/wqe-mib"]),
                                   metricsPort=found["ports"][0]["containerPort"],
                                   reservedBy="sidecar" if reserved else "node")
                del expected["imagePullPolicy"]
                self.assertEqual(found, expected)

    def test_lint(self):
        for values in ([], ["--set", MONITORING]):
            done = helm("lint", "--strict", CHART, *values)
            self.assertEqual(done.returncode, 0, done.stdout + done.stderr)
