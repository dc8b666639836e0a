# SPDX-License-Identifier: Apache-2.0
"""The template of the sidecar: its memory, and what charts may give to it."""

import json
import os
import re
import tempfile
import unittest

import yaml

from chart import CHART, cases, dependent, helm, of_kind, parse, render, sidecar


def broken(wanted):
    """What the template's rules say of (key, value) each."""
    with tempfile.TemporaryDirectory() as directory:
        chart = dependent(directory, {})
        with open(os.path.join(chart, "templates/rules.yaml"), "w", encoding="utf-8") as file:
            file.write("""{{- $rules := include "purser.sidecarRules" . | fromYaml }}
{{- $results := list }}
{{- range .Values.cases }}
{{- $rule := get $rules (first .) }}
{{- $results = append $results (dict "breaks" (include "purser.breaksRule" (dict "rule" $rule "value" (last .))) "must" $rule.must) }}
{{- end }}
{apiVersion: v1, kind: ConfigMap, metadata: {name: rules}, data: {{ $results | toJson }}}
""")
        values = os.path.join(directory, "cases.json")
        with open(values, "w", encoding="utf-8") as file:
            json.dump({"cases": wanted}, file)
        return of_kind(render("--values", values, "--show-only", "templates/rules.yaml", chart=chart), "ConfigMap", "rules")["data"]


class Memory(unittest.TestCase):
    def test_queue_memory_is_in_request_and_limit(self):
        resources = sidecar(queueMemoryMiB=64)["resources"]
        self.assertEqual(resources["requests"]["memory"], "112Mi")
        self.assertEqual(resources["limits"]["memory"], "112Mi")
        self.assertEqual(resources["limits"]["rdma/wqe-mib"], "64")
        self.assertNotIn("cpu", resources["limits"])

    def test_the_cgroup_bound_is_not_below_what_the_plugin_gives(self):
        for units in (1, 2, 16, 63, 64, 300, 1000, 65536):
            container = sidecar(queueMemoryMiB=units)
            fraction = next(float(a.split("=")[1]) for a in container["args"] if a.startswith("--memory-limit-fraction"))
            limit = int(container["resources"]["limits"]["memory"][:-2])
            self.assertGreaterEqual(round(limit * fraction * 2**20), units * 2**20, units)
            self.assertLess(fraction * limit - units, 0.0001 * limit + 1e-6)
            self.assertLessEqual(fraction, 1)

    def test_units_of_several_mebibytes(self):
        container = sidecar(queueMemoryMiB=100, queueMemoryUnitMiB=16)
        self.assertEqual(container["resources"]["limits"]["rdma/wqe-16mib"], "7")
        self.assertNotIn("rdma/wqe-mib", container["resources"]["limits"])
        self.assertEqual(container["resources"]["limits"]["memory"], f"{48 + 112}Mi")
        fraction = next(float(a.split("=")[1]) for a in container["args"] if a.startswith("--memory-limit-fraction"))
        self.assertGreaterEqual(fraction * 160, 112)

    def test_the_node_reserves(self):
        container = sidecar(queueMemoryMiB=64, reservedBy="node")
        self.assertEqual(container["resources"]["requests"]["memory"], "48Mi")
        self.assertEqual(container["resources"]["limits"]["memory"], "48Mi")
        self.assertFalse([a for a in container["args"] if "fraction" in a])


class Template(unittest.TestCase):
    def test_the_sidecar_of_a_chart_that_depends_on_this_one(self):
        with tempfile.TemporaryDirectory() as directory:
            chart = dependent(directory, {"queueMemoryMiB": 8, "logLevel": "debug"}, {"sidecar": {"reservedBy": "node"}})
            documents = render(chart=chart)
        self.assertEqual([d["kind"] for d in documents], ["Pod"])
        container = documents[0]["spec"]["initContainers"][0]
        with open(os.path.join(CHART, "Chart.yaml"), encoding="utf-8") as file:
            version = yaml.safe_load(file)["appVersion"]
        self.assertEqual(container["image"], f"purser/sidecar:{version}")
        self.assertEqual(container["restartPolicy"], "Always")
        self.assertEqual(container["startupProbe"]["exec"]["command"][0], "purser")
        self.assertIn("--log-level=debug", container["args"])
        self.assertEqual(container["resources"]["limits"]["memory"], "48Mi")

    def test_what_the_schema_refuses_the_rules_refuse_too(self):
        """Of each value of the sidecar, in the same words; and what it takes they take."""
        wanted = []
        for name in ("refused_values", "accepted_values"):
            for case in cases(name):
                values, text = (*case.split(" | "), "")[:2]
                values = parse(values)
                if set(values) == {"sidecar"} and not re.search(r"more than cpuLimit|makes units|not allowed", text):
                    wanted += [(key, value, text) for key, value in values["sidecar"].items() if value is not None]
        self.assertGreater(len(wanted), 50)
        results = broken([(key, value) for key, value, _ in wanted])
        for (key, value, text), result in zip(wanted, results, strict=True):
            with self.subTest(key, value=value):
                self.assertEqual(bool(result["breaks"]), bool(text))
                self.assertIn(re.sub(r"^.*value must be ('(.*)'$|'?)", r"\2", text), result["must"])

    def test_overrides_are_held_against_the_rules(self):
        for overrides, text in (({"ipcLock": "false"}, 'template purser.sidecar: ipcLock is "false", and must be true or false, without quotes'),
                                ({"queueMemoryMiB": 1.9}, "queueMemoryMiB is 1.9, and must be a whole number"),
                                ({"devices": ["a", "b c"]}, 'devices is \\["a","b c"\\], and must be a list'),
                                ({"cpuRequest": 2, "cpuLimit": "1500m"}, "cpuRequest, 2, is more than cpuLimit, 1500m")):
            with self.subTest(overrides), self.assertRaisesRegex(AssertionError, text):
                sidecar(**overrides)
        with tempfile.TemporaryDirectory() as directory:
            done = helm("template", dependent(directory, {"sharedVolumeMiB": 0}))
            self.assertIn("sharedVolumeMiB is 0, and must be", done.stderr)

    def test_each_value_of_the_schema_has_a_rule_with_its_sentence(self):
        with open(os.path.join(CHART, "values.schema.json"), encoding="utf-8") as file:
            schema = json.load(file)
        with open(os.path.join(CHART, "templates/_sidecar_values.tpl"), encoding="utf-8") as file:
            rules = yaml.safe_load(re.search(r'define "purser.sidecarRules" -}}(.*?){{- end', file.read(), re.DOTALL)[1])
        sentences = {}
        for key, value in schema["properties"]["sidecar"]["properties"].items():
            value = schema["definitions"].get(value.get("$ref", "").removeprefix("#/definitions/"), value)
            sentences[key] = value["else"]["const"] if "else" in value else "one of " + ", ".join(f"'{word}'" for word in value["enum"])
        self.assertEqual({key: rule["must"] for key, rule in rules.items()}, sentences)

    def test_an_override_that_is_empty_overrides(self):
        with tempfile.TemporaryDirectory() as directory:
            chart = dependent(directory, {"ipcLock": False, "cpuLimit": "", "devices": []},
                              {"sidecar": {"ipcLock": True, "cpuLimit": 1, "devices": ["mlx5_0"]}})
            container = render(chart=chart)[0]["spec"]["initContainers"][0]
        self.assertEqual(container["securityContext"]["capabilities"], {"drop": ["ALL"]})
        self.assertNotIn("cpu", container["resources"]["limits"])
        self.assertFalse([a for a in container["args"] if a.startswith("--device")])

    def test_an_unknown_override_is_refused(self):
        with self.assertRaisesRegex(AssertionError, "is no value of the sidecar; there are baseMemoryMiB"):
            sidecar(queueMemory=8)

    def test_a_dependency_of_another_name_is_not_found(self):
        with tempfile.TemporaryDirectory() as directory:
            chart = dependent(directory, {})
            with open(os.path.join(chart, "Chart.yaml"), "a", encoding="utf-8") as file:
                file.write("    alias: rdma\n")
            done = helm("template", chart)
        self.assertIn("chart application has no dependency named purser", done.stderr)
