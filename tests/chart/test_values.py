# SPDX-License-Identifier: Apache-2.0
"""Which values the chart takes, and what it says of those that it does not."""

import concurrent.futures
import json
import os
import tempfile
import unittest

import yaml

from chart import CHART, cases, helm, of_kind, render, sidecar


class Values(unittest.TestCase):
    def test_wrong_values_are_refused_with_a_sentence(self):
        def check(case):
            value, text = case.split(" | ")
            return value, text, helm("template", "purser", CHART, "--set-json", value)

        with concurrent.futures.ThreadPoolExecutor(os.cpu_count()) as pool:
            for value, text, done in pool.map(check, cases("refused_values")):
                with self.subTest(value):
                    self.assertNotEqual(done.returncode, 0, "was taken")
                    self.assertIn(text, done.stderr)

    def test_good_values_are_taken(self):
        for value in cases("accepted_values"):
            with self.subTest(value):
                render("--set-json", value)

    def test_the_configuration_is_that_of_the_plugin(self):
        def check(case):
            verdict, text, sentence = (*case.split(" | "), "")[:3]
            config = json.loads(text)
            values = [f"config.{key}={json.dumps(value)}" for key, value in config.items() if key != "resources"]
            values += [f"config.resources.{key}={json.dumps(value)}" for key, value in config.get("resources", {}).items()]
            first = (config.get("resources", {}).get("pools") or [{}])[0]
            values.append(f'sidecar.hcaResource="{first.get("resourcePrefix") or "rdma"}/{first.get("resourceName", "hca")}"')
            return verdict, text, sentence, helm("template", "purser", CHART, "--set-json", ",".join(values))

        with concurrent.futures.ThreadPoolExecutor(os.cpu_count()) as pool:
            for verdict, text, sentence, done in pool.map(check, cases("configs")):
                with self.subTest(text):
                    if verdict == "taken":
                        self.assertEqual(done.returncode, 0, done.stderr)
                        self.check_config(done.stdout, json.loads(text))
                    else:
                        self.assertNotEqual(done.returncode, 0, "was taken")
                        self.assertTrue(sentence)
                        self.assertIn(sentence, done.stderr)

    def check_config(self, rendered, given):
        """All of it is in the ConfigMap, each value as it was given."""
        made = yaml.safe_load(of_kind([d for d in yaml.safe_load_all(rendered) if d], "ConfigMap")["data"]["config.yaml"])
        self.assertEqual(made["version"], "v1")
        for key, value in given.items():
            for inner, expected in value.items() if isinstance(value, dict) else ():
                found = made[key][inner]
                self.assertEqual({**found, **expected} if isinstance(found, dict) else expected, found)
            if not isinstance(value, dict):
                self.assertEqual(made[key], value)

    def test_float_values_of_the_command_line_are_taken(self):
        """Helm passes them as strings."""
        made = render("--set", "config.resources.queueMemory.nodeMemoryFraction=0.1,config.rescanInterval=0.5")
        config = yaml.safe_load(of_kind(made, "ConfigMap")["data"]["config.yaml"])
        self.assertEqual(config["resources"]["queueMemory"]["nodeMemoryFraction"], "0.1")
        self.assertEqual(config["rescanInterval"], "0.5")

    def test_a_value_of_another_file_is_taken_back_by_null(self):
        with tempfile.TemporaryDirectory() as directory:
            for name, queue_memory in (("first", {"capacity": "8Gi"}), ("second", {"capacity": None, "nodeMemoryFraction": 0.2})):
                with open(os.path.join(directory, name), "w", encoding="utf-8") as file:
                    json.dump({"config": {"resources": {"queueMemory": queue_memory}}}, file)
            render("--values", os.path.join(directory, "first"), "--values", os.path.join(directory, "second"))

    def test_there_is_a_test_where_it_can_run(self):
        for value, reason in (("config.resources.pools=[]", "no share of rdma/hca is advertised"),
                              ('config.resources.pools=[{"resourceName":"hca","rdmaHcaMax":0}]', "no share of rdma/hca"),
                              ("config.resources.queueMemory.enabled=false", "queue memory is not advertised"),
                              ('config.resources.queueMemory.capacity="1Mi"', "it takes 2 MiB of queue memory"),
                              ('config.resources.queueMemory.capacity="2Mi"', "")):
            with self.subTest(value):
                done = helm("install", "purser", CHART, "--dry-run=client", "--namespace", "a", "--set-json", value)
                self.assertEqual("purser-test" in done.stdout, not reason, done.stderr)
                self.assertEqual("helm test purser --namespace a" in done.stdout, not reason)
                self.assertIn(f"There is no pod for `helm test`: {reason}" if reason else "Try it", done.stdout)

    def test_every_value_is_documented(self):
        """By a comment that begins with '# -- ' above it, or above the map that it is in."""
        with open(os.path.join(CHART, "values.yaml"), encoding="utf-8") as file:
            text = file.read()
        lines = text.splitlines()

        def check(mapping, path):
            for key, value in mapping.value:
                line = key.start_mark.line - 1
                while lines[line].lstrip().startswith("#") and "# -- " not in lines[line]:
                    line -= 1
                if "# -- " in lines[line]:
                    continue
                self.assertIsInstance(value, yaml.MappingNode, f"{path}{key.value} is not documented")
                check(value, f"{path}{key.value}.")

        check(yaml.compose(text), "")


class Numbers(unittest.TestCase):
    def test_large_ones_are_written_out(self):
        container = sidecar(runAsUser=1000650000, queueMemoryMiB=200000, metricsPort=65535, baseMemoryMiB=1000000)
        self.assertEqual(container["securityContext"]["runAsUser"], 1000650000)
        self.assertEqual(container["resources"]["limits"]["memory"], "1200000Mi")
        self.assertEqual(container["ports"][0]["containerPort"], 65535)
        test = of_kind(render("--set-json", "sidecar.runAsUser=1000650000,sidecar.sharedVolumeMiB=2000000"), "Pod", "purser-test")["spec"]
        self.assertEqual(test["volumes"][0]["emptyDir"]["sizeLimit"], "2000000Mi")
        self.assertEqual(test["securityContext"]["fsGroup"], 1000650000)
        for container in test["initContainers"] + test["containers"]:
            self.assertEqual(container["securityContext"]["runAsUser"], 1000650000)
