# SPDX-License-Identifier: Apache-2.0
"""manifests/examples as users apply them."""

from kube import ROOT

DIRECTORY = ROOT / "manifests/examples"


def text(name):
    return (DIRECTORY / f"{name}.yaml").read_text()
