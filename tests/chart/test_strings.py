# SPDX-License-Identifier: Apache-2.0
"""No string of the values becomes anything but that string."""

import json
import os
import re
import tempfile
import unittest

import yaml

from chart import CHART, MONITORING, helm, render


def filled(schema, definitions, text):
    """Values in which each string, and each name in a map, that the schema knows is this text."""
    schema = definitions.get(schema.get("$ref", "").removeprefix("#/definitions/"), schema)
    if "properties" in schema:
        return {key: value for key, value in ((key, filled(inner, definitions, text)) for key, inner in schema["properties"].items())
                if value is not None}
    kept = schema.get("if", schema)
    if "additionalProperties" in kept and "propertyNames" in kept:
        return {"key": text, text: "value"}
    if "items" in kept:
        inner = filled(kept["items"], definitions, text)
        return None if inner is None else [inner]
    return text if any(form.get("type") == "string" or "enum" in form for form in (kept, *kept.get("anyOf", []))) else None


def without(tree, path, text):
    """Takes out the value that a message of the schema's names; with an empty path the names of maps that are the text."""
    if not path:
        for inner in list(tree.values() if isinstance(tree, dict) else tree if isinstance(tree, list) else ()):
            without(inner, path, text)
        if isinstance(tree, dict):
            tree.pop(text, None)
        return
    for key in path[:-1]:
        if (int(key) if isinstance(tree, list) else key) not in (range(len(tree)) if isinstance(tree, list) else tree):
            return
        tree = tree[int(key) if isinstance(tree, list) else key]
    tree.clear() if isinstance(tree, list) else tree.pop(path[-1], None)


def leaves(tree):
    """All scalars in a document, the names in its maps, and what is in a configuration that is a string there."""
    if isinstance(tree, dict):
        for key, value in tree.items():
            yield key
            yield from leaves(yaml.safe_load(value) if key == "config.yaml" else value)
    elif isinstance(tree, list):
        for value in tree:
            yield from leaves(value)
    else:
        yield tree


class Strings(unittest.TestCase):
    def test_each_string_is_refused_with_a_sentence_or_arrives_whole(self):
        """Whatever it has in it: none adds a line, ends a string or begins a comment."""
        with open(os.path.join(CHART, "values.schema.json"), encoding="utf-8") as file:
            schema = json.load(file)
        known = {"key", *re.findall(r"\w+", json.dumps(schema))}
        usual = set(leaves(render("--set", MONITORING)))
        for text in ("x\n      hostPID: true", "x: {y} # z", '/x"', "true", "a.b"):
            values = filled(schema, schema["definitions"], text)
            del values["configFile"]  # a file as it is
            # Selecting by ifNames needs it; and the sidecar's pool is to be one that there is.
            values["devicePlugin"]["hostNetwork"] = True
            pools = values["config"]["resources"]["pools"]
            pools.append({"resourceName": "hca"})
            refused = 0
            with self.subTest(text), tempfile.TemporaryDirectory() as directory:
                while True:
                    with open(os.path.join(directory, "values.yaml"), "w", encoding="utf-8") as file:
                        json.dump(values, file)
                    done = helm("template", "purser", CHART, "--namespace", "purser-system", "--values", file.name, "--set", MONITORING)
                    if done.returncode == 0:
                        break
                    faults = re.findall(r"^ *- at '(.*?)': (value must be|missing propert|invalid propertyName)", done.stderr, re.MULTILINE)
                    self.assertTrue(faults, done.stderr)
                    refused += len(faults)
                    for path, sentence in faults:
                        if path or sentence == "invalid propertyName":
                            without(values, path.split("/")[1:], text)
                self.assertGreater(refused, 10)
                found = set(leaves(list(yaml.safe_load_all(done.stdout))))
                if "/" in text or " " in text:
                    self.assertIn(text, found)
                    self.assertIn(text, values["devicePlugin"]["podAnnotations"].values())
                strange = {leaf for leaf in found - usual if text not in str(leaf) and leaf not in known and leaf is not True
                           and not re.fullmatch("[0-9a-f]{64}", leaf)}
                self.assertEqual(strange, set())
                self.assertNotIn("hostPID", found)

    def test_names_that_look_like_numbers(self):
        for release, namespace in (("123", "456"), ("true", "null"), ("1e3", "0x10")):
            done = helm("template", release, CHART, "--namespace", namespace, "--set", MONITORING, "--set-json",
                        'nameOverride="7",devicePlugin.priorityClassName="1",imagePullSecrets=[{"name":"2"}],sidecar.devices=["3"],'
                        'images.sidecar.tag="4",images.devicePlugin.repository="5",devicePlugin.nodeSelector={"6":"true"}')
            self.assertEqual(done.returncode, 0, done.stderr)
            documents = [document for document in yaml.safe_load_all(done.stdout) if document]
            self.assertEqual({d["metadata"]["namespace"] for d in documents}, {namespace})
            for document in documents:
                with self.subTest(release, kind=document["kind"]):
                    self.assertTrue(document["metadata"]["name"].startswith(release + "-7"))
                    self.assertEqual(document["metadata"]["labels"]["app.kubernetes.io/instance"], release)
                    self.check_strings(document)

    def check_strings(self, tree):
        """What Kubernetes wants as a string."""
        for key, value in tree.items() if isinstance(tree, dict) else enumerate(tree) if isinstance(tree, list) else ():
            if key in ("labels", "matchLabels", "annotations", "nodeSelector"):
                self.assertEqual({type(item) for pair in value.items() for item in pair}, {str}, value)
            if key in ("name", "namespace", "image", "priorityClassName", "serviceAccountName"):
                self.assertIsInstance(value, str, tree)
            if key in ("args", "command"):
                self.assertEqual({type(item) for item in value}, {str}, value)
            self.check_strings(value)

    def test_names_that_are_cut_end_well(self):
        override = "a" * 8 + "--" + "b" * 20
        done = helm("template", "r" * 53, CHART, "--set", "nameOverride=" + override)
        self.assertIn(f'name: "{"r" * 53}-{"a" * 8}"\n', done.stdout)
