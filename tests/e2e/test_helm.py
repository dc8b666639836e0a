# SPDX-License-Identifier: Apache-2.0
"""The chart's life on a cluster, by the real Helm: install, test, upgrade, rollback, uninstall; and values that it refuses."""

import contextlib
import json
import re
import shlex

import pytest
import yaml

import pods
from conftest import VALUES
from kube import PURSER_NAMESPACE, RESOURCES, ROOT, Failed, total, wait_until

CHART = ROOT / "charts/purser"
RELEASE = ("purser", CHART, "--namespace", PURSER_NAMESPACE)
# What the kubelet itself keeps there.
KUBELETS_OWN = {"kubelet.sock", "kubelet_internal_checkpoint", "DEPRECATION"}


def install(cluster, *values):
    return cluster.helm("install", *RELEASE, "--create-namespace", "--values", VALUES, *values, "--wait", "--timeout=300s", timeout=330)


def uninstall(cluster):
    """Until nothing is left: the DaemonSet's pod goes a little after the DaemonSet."""
    cluster.helm("uninstall", "purser", "--namespace", PURSER_NAMESPACE, "--ignore-not-found", "--wait", "--timeout=300s", timeout=330)
    wait_until(lambda: all(count == 0 for count in cluster.resources().values()), "nothing of Purser is allocatable", 30)
    wait_until(lambda: not objects_of_purser(cluster), "the API server has nothing of Purser", 60)


def revision(cluster):
    return json.loads(cluster.helm("list", "--namespace", PURSER_NAMESPACE, "-o", "json"))[0]["revision"]


def await_resources(cluster, expected, timeout=30):
    wait_until(lambda: cluster.resources() == expected, f"allocatable is {expected}", timeout)


def objects_of_purser(cluster):
    """Everything in the API server that is the chart's or Helm's record of it, of all kinds that can be listed."""
    kinds = [kind for kind in cluster.kubectl("api-resources", "--verbs=list", "-o", "name").split()
             if not kind.startswith("events")]
    listed = cluster.kubectl("get", ",".join(kinds), "--all-namespaces", "-o", "json",
                             "--ignore-not-found", "-l", "app.kubernetes.io/name=purser")
    records = cluster.kubectl("get", "secrets,configmaps", "--all-namespaces", "-o", "json", "-l", "owner=helm,name=purser")
    return sorted(f"{item['kind']} {item['metadata']['name']}" for text in (listed, records) if text.strip()
                  for item in json.loads(text)["items"])


def left_on_node(cluster):
    """Sockets, files, CDI specifications and processes."""
    found = set(cluster.node("ls -A /var/lib/kubelet/device-plugins").split()) - KUBELETS_OWN
    found |= set(cluster.node("ls -A /var/lib/kubelet/plugins_registry /etc/cdi /var/run/cdi 2>/dev/null || true").split()) - {
        "/var/lib/kubelet/plugins_registry:", "/etc/cdi:", "/var/run/cdi:"}
    found |= set(cluster.node("find /var/lib/kubelet /run /etc /var/lib/purser -xdev -iname '*purser*' 2>/dev/null || true").split())
    return found | set(cluster.node("grep -l purser /proc/[0-9]*/comm 2>/dev/null || true").split())


def await_nothing_left_on_node(cluster):
    """The kubelet removes a pod's directory, which has its containers' names in it, a little after the pod."""
    wait_until(lambda: left_on_node(cluster) == set(), f"nothing of Purser is left on the node: {left_on_node(cluster)}", 60)


@pytest.mark.parametrize("values, sentence", [
    ("sidecar.queueMemoryMiB=0", "a whole number of MiB, at least 1"),
    ("config.resources.queueMemory.capacity=lots", "a quantity of bytes, at least 1Mi, such as 8Gi"),
    ("config.resource=1", "additional properties 'resource' not allowed"),
    ("sidecar.hcaResource=rdma/other", "which no pool of config.resources.pools advertises (there are: rdma/hca)"),
])
def test_a_wrong_value_is_refused_with_a_sentence_and_changes_nothing(purser, values, sentence):
    before = revision(purser)
    with pytest.raises(Failed) as refusal:
        purser.helm("upgrade", *RELEASE, "--reuse-values", "--set", values)
    assert sentence in refusal.value.process.stderr
    assert revision(purser) == before
    assert purser.resources() == RESOURCES


@contextlib.contextmanager
def prometheus_operators_kinds(cluster):
    """The kinds of the Prometheus Operator, without it: whatever an object says is taken."""
    def definition(plural, kind):
        schema = {"openAPIV3Schema": {"type": "object", "x-kubernetes-preserve-unknown-fields": True}}
        return {"apiVersion": "apiextensions.k8s.io/v1", "kind": "CustomResourceDefinition",
                "metadata": {"name": plural + ".monitoring.coreos.com"},
                "spec": {"group": "monitoring.coreos.com", "scope": "Namespaced", "names": {"plural": plural, "kind": kind},
                         "versions": [{"name": "v1", "served": True, "storage": True, "schema": schema}]}}

    definitions = yaml.safe_dump_all([definition("podmonitors", "PodMonitor"), definition("prometheusrules", "PrometheusRule")])
    cluster.kubectl("apply", "-f", "-", stdin=definitions)
    try:
        cluster.kubectl("wait", "--for=condition=Established", "--timeout=60s", "crd/podmonitors.monitoring.coreos.com",
                        "crd/prometheusrules.monitoring.coreos.com")
        yield
    finally:
        cluster.kubectl("delete", "-f", "-", stdin=definitions)


def commands(notes):
    """Those that NOTES.txt tells the user to run, by program."""
    joined = re.sub(r"\n +,", ",", notes)
    return {line.split()[0]: shlex.split(line)[1:] for line in joined.splitlines() if re.match(r"  (kubectl|helm) ", line)}


@pytest.fixture
def monitoring(cluster):
    with prometheus_operators_kinds(cluster):
        yield


def test_from_install_to_uninstall(cluster, monitoring, namespace):
    uninstall(cluster)
    await_nothing_left_on_node(cluster)

    notes = commands(install(cluster, "--set", "podMonitor.enabled=true,prometheusRule.enabled=true,dashboard.enabled=true"))
    await_resources(cluster, RESOURCES)
    # So that the same questions mean something below.
    kinds = {text.split()[0] for text in objects_of_purser(cluster)}
    assert {"DaemonSet", "ConfigMap", "ServiceAccount", "PodMonitor", "PrometheusRule", "Secret"} <= kinds, kinds
    assert left_on_node(cluster) != set()

    # What the user is told to run.
    shown = cluster.kubectl(*notes["kubectl"])
    assert re.search(rf"^{re.escape(cluster.the_node()['metadata']['name'])} +100 +1024$", shown, re.MULTILINE), shown
    tested = cluster.helm(*notes["helm"], timeout=300)
    assert "Phase:          Succeeded" in tested, tested
    assert "verified      all 1,130,496 bytes, by their receivers" in tested, tested
    assert cluster.get("pods", "--namespace", PURSER_NAMESPACE, "-l", "app.kubernetes.io/component=test")["items"] == []

    # A pod that holds queue pairs sees nothing of all that follows.
    cluster.apply(pods.sidecar_pod("app", command=["purser", "qp", "create", "--count", "3"]), namespace=namespace)
    cluster.await_pod("app", namespace)

    def is_unharmed():
        status = cluster.pod("app", namespace)["status"]
        assert [c["restartCount"] for c in status["initContainerStatuses"] + status["containerStatuses"]] == [0, 0]
        return total(cluster.sidecar_metrics("app", namespace), "purser_queue_pairs") == 3

    wait_until(is_unharmed, "the pod has its queue pairs", 30)

    # The new pool comes first: a device is in one pool alone.
    pools = [{"resourceName": "hca", "rdmaHcaMax": 50}, {"resourceName": "fast", "rdmaHcaMax": 7, "selectors": {"devices": ["mlx5_*"]}}]
    cluster.helm("upgrade", *RELEASE, "--reuse-values", "--set", "config.resources.queueMemory.capacity=512Mi",
                 "--set-json", "config.resources.pools=" + json.dumps(pools), "--wait", "--timeout=300s", timeout=330)
    await_resources(cluster, {"rdma/hca": 50, "rdma/wqe-mib": 512})
    assert cluster.the_node()["status"]["allocatable"]["rdma/fast"] == "0"
    assert is_unharmed()

    cluster.helm("rollback", "purser", "1", "--namespace", PURSER_NAMESPACE, "--wait", "--timeout=300s", timeout=330)
    await_resources(cluster, RESOURCES)
    assert is_unharmed()

    # The kubelet withdraws at once what no plugin answers for. The names stay, with 0: only the kubelet could remove them.
    uninstall(cluster)
    assert is_unharmed()
    cluster.kubectl("delete", "pod", "app", "--namespace", namespace, "--wait", "--timeout=300s", timeout=330)
    await_nothing_left_on_node(cluster)
