# SPDX-License-Identifier: Apache-2.0
"""manifests/examples as users apply them."""

import re

import yaml

from kube import ROOT

DIRECTORY = ROOT / "manifests/examples"


def text(name):
    return (DIRECTORY / f"{name}.yaml").read_text()


def objects(manifest, **labels):
    """The documents of a manifest whose metadata has these labels, all of them without any."""
    return [document for document in yaml.safe_load_all(manifest)
            if labels.items() <= document["metadata"].get("labels", {}).items()]


def commented_commands(name):
    """The commands that a file's first comment tells the reader to run."""
    return re.findall(r"^#   (kubectl .*|address=.*|sed .*)$", text(name), re.MULTILINE)
