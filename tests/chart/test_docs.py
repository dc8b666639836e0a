# SPDX-License-Identifier: Apache-2.0
"""What the documentation tells to type, and quotes."""

import glob
import os
import re
import unittest

from chart import ROOT, examples

# Said by Kubernetes and the C library.
OF_OTHERS = {"Insufficient rdma/wqe-mib", "resources.limits[rdma/wqe-mib]", "must be an integer", "must be equal to rdma/wqe-mib limit",
             "hostPath type check failed", "Permission denied"}


def read(name):
    with open(os.path.join(ROOT, name), encoding="utf-8") as file:
        return file.read()


def pages():
    return ["README.md", *(os.path.relpath(path, ROOT) for path in sorted(glob.glob(os.path.join(ROOT, "docs/*.md"))))]


def commands(program):
    """(page, command, the page before it) of each that stands in a block of shell commands, its lines joined."""
    for page in pages():
        text = read(page)
        for block in re.finditer(r"```sh\n(.*?)```", text, re.DOTALL):
            for line in block[1].replace("\\\n", " ").splitlines():
                if re.search(rf"\b{program}\b", line):
                    yield page, line, text[:block.end()]


class Install(unittest.TestCase):
    def test_whoever_installs_is_told_where_the_images_come_from(self):
        found = list(commands("helm install"))
        self.assertGreaterEqual({page for page, _, _ in found}, {"README.md", "docs/operations.md", "docs/images.md"})
        for page, command, before in found:
            with self.subTest(page):
                self.assertIn("--namespace purser-system", command)
                for image in ("devicePlugin", "sidecar"):
                    self.assertIn(f"--set images.{image}.repository=", command)
                self.assertIn("./dev image", before)

    def test_manifests_are_applied_with_images_of_a_registry(self):
        for page, command, _ in commands("manifests/purser.yaml"):
            with self.subTest(page):
                self.assertIn("purser/(device-plugin|sidecar):#", command)
        self.assertIn("registry.example.com", read("manifests/purser.yaml"))
        for name in {name for name, _ in examples()}:
            with self.subTest(name):
                self.assertRegex(read("manifests/examples/" + name).split("apiVersion")[0], r"docs/images\.md|\./dev image")

    def test_kubectl_is_told_which_node(self):
        """A jsonpath below .status prints nothing of a list."""
        for page in pages():
            for command in re.findall(r"kubectl get nodes? -o jsonpath='\{(.*?)\}", read(page).replace("\n", " ")):
                with self.subTest(page):
                    self.assertTrue(command.startswith((".items", "range")), command)


class Messages(unittest.TestCase):
    def test_those_of_the_troubleshooting_are_said(self):
        """Each part between … stands in a source."""
        said = ""
        for directory in ("base", "plugin", "sidecar", "client", "cli", "rdma", "node_view"):
            for path in sorted(glob.glob(os.path.join(ROOT, directory, "**/*.cc"), recursive=True)):
                with open(path, encoding="utf-8") as file:
                    said += re.sub(r'"\s+"', "", file.read())
        table = read("docs/operations.md").split("## Troubleshooting")[1]
        rows = re.findall(r"^\| (?!symptom|---)([^|]*) \| ([^|]*) \|", table, re.MULTILINE)
        self.assertGreater(len(rows), 15)
        for symptom, message in rows:
            for quoted in re.findall(r"`([^`]*)`", message):
                for part in (part.strip(" ;:") for part in quoted.split("…")):
                    if len(part) >= 8 and part not in OF_OTHERS:
                        with self.subTest(symptom):
                            self.assertTrue(part in said, f"nobody says {part!r}")
