# SPDX-License-Identifier: Apache-2.0
"""manifests/examples as users apply them."""

import yaml

from kube import ROOT

DIRECTORY = ROOT / "manifests/examples"


def text(name):
    return (DIRECTORY / f"{name}.yaml").read_text()


def the_object(name):
    """Of an example that is one object."""
    return yaml.safe_load(text(name))
