# SPDX-License-Identifier: Apache-2.0
"""Which values the chart takes, and what it says of those that it does not."""

import concurrent.futures
import json
import os
import tempfile
import unittest

import yaml

from chart import CHART, Many, cases, helm, of_kind, parse, render, sidecar


def of_config(text):
    """The values of the chart with this configuration, and what has to go with it."""
    config = json.loads(text)
    resources = config.get("resources", {})
    pool = (resources.get("pools") or [{}])[0]
    units = {"16Mi": 16, "64Gi": 65536, 2097152: 2}
    return {"config": config,
            "sidecar": {"hcaResource": f"{pool.get('resourcePrefix') or 'rdma'}/{pool.get('resourceName', 'hca')}",
                        "queueMemoryUnitMiB": units.get(resources.get("queueMemory", {}).get("unit"), 1)},
            "devicePlugin": {"hostNetwork": "ifNames" in text or "pfNames" in text}}


def alone(values):
    with tempfile.TemporaryDirectory() as directory:
        path = os.path.join(directory, "values.json")
        with open(path, "w", encoding="utf-8") as file:
            json.dump(values, file)
        return helm("template", "purser", CHART, "--values", path)


class Values(unittest.TestCase):
    def check_refused(self, wrong):
        """Of (values, sentence): the schema's all at once, then those that a template refuses."""
        faults = Many([values for values, _ in wrong]).faults()
        left = [number for number in range(len(wrong)) if number not in faults]
        with concurrent.futures.ThreadPoolExecutor(os.cpu_count()) as pool:
            for number, done in zip(left, pool.map(lambda number: alone(wrong[number][0]), left)):
                faults[number] = done.stderr if done.returncode != 0 else "taken"
        for number, (values, sentence) in enumerate(wrong):
            with self.subTest(json.dumps(values)):
                self.assertTrue(sentence)
                self.assertIn(sentence, faults[number])

    def check_taken(self, good):
        many = Many(good)
        if many.done.returncode != 0:
            for values in good:
                with self.subTest(json.dumps(values)):
                    done = alone(values)
                    self.assertEqual(done.returncode, 0, done.stderr)
            self.fail(many.done.stderr)
        return many.documents()

    def test_wrong_values_are_refused_with_a_sentence(self):
        self.check_refused([(parse(values), text) for values, text in (case.split(" | ") for case in cases("refused_values"))])

    def test_good_values_are_taken(self):
        self.check_taken([parse(case) for case in cases("accepted_values")])

    def test_the_configuration_is_that_of_the_plugin(self):
        verdicts = [case.split(" | ") for case in cases("configs")]
        self.check_refused([(of_config(text), sentence) for verdict, text, sentence in (v for v in verdicts if v[0] == "refused")])
        taken = [json.loads(text) for verdict, text in (v for v in verdicts if v[0] == "taken")]
        self.assertEqual(len([v for v in verdicts if v[0] in ("taken", "refused")]), len(verdicts))
        documents = self.check_taken([of_config(json.dumps(config)) for config in taken])
        for number, given in enumerate(taken):
            with self.subTest(json.dumps(given)):
                made = next(d for d in documents[number] if d["kind"] == "ConfigMap")["data"]["config.yaml"]
                self.check_config(yaml.safe_load(made), given)

    def check_config(self, made, given):
        """All of it is in the ConfigMap, each value as it was given."""
        self.assertEqual(made["version"], "v1")
        for key, value in given.items():
            for inner, expected in value.items() if isinstance(value, dict) else ():
                found = made[key].get(inner)
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

    def test_a_file_of_another_plugin_arrives_as_it_is(self):
        text = '  {"configList": [{"resourceName": "hca_a",\n\t"rdmaHcaMax": 63, "devices": ["eth0 # é"]}]}\n\n'
        with tempfile.TemporaryDirectory() as directory:
            path = os.path.join(directory, "config.json")
            with open(path, "w", encoding="utf-8") as file:
                file.write(text)
            made = render("--set-file", "configFile=" + path, "--set", "devicePlugin.resourcePrefix=nvidia.com")
        self.assertEqual(of_kind(made, "ConfigMap")["data"], {"config.yaml": text})
        pod = of_kind(made, "DaemonSet")["spec"]["template"]
        self.assertIn("--resource-prefix=nvidia.com", pod["spec"]["containers"][0]["args"])
        usual = of_kind(render(), "DaemonSet")["spec"]["template"]
        self.assertNotEqual(*(p["metadata"]["annotations"]["purser.dev/config-checksum"] for p in (pod, usual)))
        self.assertFalse([d for d in made if d["kind"] == "Pod"], "it cannot be known whether the test could run")

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
