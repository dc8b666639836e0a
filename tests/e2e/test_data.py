# SPDX-License-Identifier: Apache-2.0
"""Two pods exchange data over their sidecars' queue pairs: manifests/examples/ping-pair*.yaml as they are."""

import re

import pytest

import conftest
import examples

MIB = 2**20


def apply(cluster, manifest, namespace, selector=None):
    chosen = ["--selector", selector] if selector else []
    cluster.kubectl("apply", "--namespace", namespace, *chosen, "-f", "-", stdin=manifest)


def moved(cluster, name, namespace):
    """What a ping pod printed when it was done, once its end was good."""
    cluster.await_pod(name, namespace, phase="Succeeded", timeout=600)
    return cluster.logs(name, namespace, "ping")


def check(cluster, server, client, namespace, record_property):
    """64 MiB by RDMA WRITE and 100 messages there and back, each byte compared by its receiver, on both sides' word."""
    printed = moved(cluster, client, namespace), moved(cluster, server, namespace)
    for text in printed:
        assert "SEND          100 x 4,096 bytes there and back" in text, text
        assert "RDMA WRITE    67,108,864" in text, text
        checksums = re.search(r"checksum +([0-9a-f]{16}) sent, ([0-9a-f]{16}) received", text)
        assert checksums and checksums[1] == checksums[2], text
        assert f"verified      all {64 * MIB + 2 * 100 * 4096:,} bytes" in text, text
    rates = [float(re.search(r": ([0-9.]+) MiB/s", text)[1]) for text in printed]
    record_property("MiB/s", rates[0])
    print(f"{client}: {printed[0]}")
    for name in (server, client):
        status = cluster.pod(name, namespace)["status"]
        assert [c["restartCount"] for c in status["initContainerStatuses"] + status["containerStatuses"]] == [0, 0]
    assert cluster.warnings(namespace) == []


@pytest.fixture(scope="module")
def host_network(purser):
    """A namespace with the pair on the host network, which moves its data beside the other test's."""
    with conftest.a_namespace(purser, "host-network", "privileged") as name:
        apply(purser, examples.text("ping-pair-host-network"), name)
        yield name


def test_two_pods_exchange_64_mib_on_pod_networks(purser, host_network, namespace, record_property):
    manifest = examples.text("ping-pair")
    apply(purser, manifest, namespace, "side=server")
    server = purser.await_pod("ping-server", namespace)
    # The cluster has no DNS: as the file's comment says.
    assert "ping-server:7471" in manifest
    apply(purser, manifest.replace("ping-server:7471", server["status"]["podIP"] + ":7471"), namespace, "side=client")
    check(purser, "ping-server", "ping-client", namespace, record_property)
    client = purser.pod("ping-client", namespace)
    assert client["status"]["podIP"] not in (server["status"]["podIP"], server["status"]["hostIP"])


def test_two_pods_exchange_64_mib_on_the_host_network(purser, host_network, record_property):
    check(purser, "ping-host-server", "ping-host-client", host_network, record_property)
    client = purser.pod("ping-host-client", host_network)
    assert client["status"]["podIP"] == client["status"]["hostIP"]
