# SPDX-License-Identifier: Apache-2.0
"""The kubelet and the plugin are replaced: what runs keeps its queue pairs, what waits starts."""

import json

import conftest
import node
import pods
import pytest
from kube import PURSER_NAMESPACE, RESOURCES, ROOT, value, wait_until

DEVICE_PLUGINS = "/var/lib/kubelet/device-plugins"


@pytest.fixture(scope="module")
def holder(purser):
    """A pod whose application holds three queue pairs for as long as it runs; its namespace."""
    with conftest.a_namespace(purser, "kubelet") as name:
        purser.apply(pods.sidecar_pod("holder", command=["purser", "qp", "create", "--count", "3"]), namespace=name)
        purser.await_pod("holder", name)
        wait_until(lambda: len(purser.queue_pairs("holder", name)) == 3, "three queue pairs", 60)
        yield name


def kubelet_devices(cluster):
    """What the kubelet wrote down: the ids of each resource, and those that each container has."""
    data = json.loads(cluster.node(f"cat {DEVICE_PLUGINS}/kubelet_internal_checkpoint"))["Data"]
    ids = {name: sorted(ids) for name, ids in data["RegisteredDevices"].items()}
    given = {(entry["PodUID"], entry["ContainerName"], entry["ResourceName"]): sorted(i for numa in entry["DeviceIDs"].values() for i in numa)
             for entry in data["PodDeviceEntries"]}
    return ids, given


def what_stays(cluster, namespace):
    """What nothing here may change: processes, queue pairs, kernel memory, ids."""
    pod = cluster.pod("holder", namespace)
    containers = {c["name"]: (c["containerID"], c["restartCount"]) for c in pod["status"]["initContainerStatuses"] + pod["status"]["containerStatuses"]}
    ids, given = kubelet_devices(cluster)
    own = {key[1:]: devices for key, devices in given.items() if key[0] == pod["metadata"]["uid"]}
    return {"containers": containers, "queue pairs": cluster.queue_pairs("holder", namespace), "ids": ids, "ids of the pod": own}


def registrations(cluster):
    metrics = cluster.plugin_metrics()
    return {name: int(value(metrics, "purser_device_plugin_registrations_total", resource=name, result="success")) for name in RESOURCES}


def another(cluster, namespace, name):
    """A pod that is created now; its controller replaces it if the kubelet turns it away."""
    cluster.apply(pods.deployment(pods.sidecar_pod(name, units=8)), namespace=namespace)


def await_another(cluster, namespace, name):
    cluster.kubectl("rollout", "status", f"deployment/{name}", "--namespace", namespace, "--timeout=180s", timeout=200)


def socket_made_at(cluster):
    """When the kubelet's socket was made, by the node's clock; 0 where there is none."""
    return float(cluster.node(f"stat -c %.W {DEVICE_PLUGINS}/kubelet.sock 2>/dev/null || echo 0"))


def test_running_pods_outlive_a_restart_of_the_kubelet(purser, holder):
    before, registered = what_stays(purser, holder), registrations(purser)
    areas, made = purser.queue_areas(), socket_made_at(purser)
    with node.statuses(purser) as statuses:
        purser.node("touch /run/node/kubelet.hold; kill -KILL $(cat /run/node/kubelet.pid)")
        another(purser, holder, "while-it-was-down")
        bound = ["get", "pods", "--namespace", holder, "-l", "app=while-it-was-down", "-o", "jsonpath={.items[*].spec.nodeName}"]
        wait_until(lambda: purser.kubectl(*bound), "the pod is bound to the node, whose kubelet is down", 30)
        assert purser.queue_areas() == areas
        purser.node("rm /run/node/kubelet.hold")
        made = wait_until(lambda: (now := socket_made_at(purser)) > made and now, "the kubelet's socket is back", 120)
        # A status has whole seconds: it is from the second that begins then.
        back = wait_until(lambda: next((when + 1 for when, counts in list(statuses) if when > made and counts == RESOURCES), None),
                          "the node's resources are back", 60)
    print(f"allocatable was back {back - made:.1f} s after the kubelet's socket")
    assert back - made <= 5
    await_another(purser, holder, "while-it-was-down")
    assert what_stays(purser, holder) == before
    assert registrations(purser) == {name: count + 1 for name, count in registered.items()}


def test_running_pods_outlive_the_plugins_pod(purser, holder):
    before, pod = what_stays(purser, holder), purser.plugin_pod()["metadata"]["name"]
    purser.kubectl("delete", "pod", pod, "--namespace", PURSER_NAMESPACE, "--wait=false")
    another(purser, holder, "while-the-plugin-was-away")
    new_plugin_serves(purser, pod)
    await_another(purser, holder, "while-the-plugin-was-away")
    assert what_stays(purser, holder) == before
    assert registrations(purser) == {name: 1 for name in RESOURCES}


def test_running_pods_outlive_a_new_image_of_the_plugin(purser, holder):
    before, pod = what_stays(purser, holder), purser.plugin_pod()["metadata"]["name"]
    image = "docker.io/purser/device-plugin"
    purser.run("shell", f"{ctr(purser)} images tag --force {image}:0.1.0 {image}:rolled")
    purser.helm("upgrade", "purser", ROOT / "charts/purser", "--namespace", PURSER_NAMESPACE, "--reuse-values", "--set", "images.devicePlugin.tag=rolled")
    another(purser, holder, "while-it-was-rolled")
    purser.kubectl("rollout", "status", "daemonset/purser", "--namespace", PURSER_NAMESPACE, "--timeout=180s", timeout=200)
    new_plugin_serves(purser, pod)
    assert purser.plugin_pod()["spec"]["containers"][0]["image"] == "purser/device-plugin:rolled"
    await_another(purser, holder, "while-it-was-rolled")
    assert what_stays(purser, holder) == before
    assert registrations(purser) == {name: 1 for name in RESOURCES}


def ctr(cluster):
    return cluster.settings()["containerd_dir"] + "/ctr -n k8s.io"


def new_plugin_serves(cluster, old):
    pod = wait_until(lambda: (new := cluster.plugin_pod()) and new["metadata"]["name"] != old and new, "there is a new plugin pod", 120)
    cluster.await_pod(pod["metadata"]["name"], PURSER_NAMESPACE)
    wait_until(lambda: cluster.resources() == RESOURCES, "the node's resources are back", 30)
