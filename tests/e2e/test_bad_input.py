# SPDX-License-Identifier: Apache-2.0
"""What is asked for wrongly is refused in words that say what to do, and the rest of the node goes on."""

import concurrent.futures
import contextlib

import pytest
import yaml

import pods
from conftest import VALUES, a_namespace
from kube import PURSER_NAMESPACE, RESOURCES, ROOT, Failed, total, wait_until


def changed(pod, change):
    change(pods.sidecar_of(pod))
    return pod


def limits(**names):
    """Of the sidecar: resources of the domain rdma, and its memory."""
    def change(sidecar):
        sidecar["resources"]["limits"] = {"memory": "48Mi", **{"rdma/" + name.replace("_", "-"): count for name, count in names.items()}}
    return change


def with_arguments(*arguments):
    return lambda sidecar: sidecar["args"].extend(arguments)


# What is changed of a sidecar, its exit code, and the words that its status and so `kubectl describe pod` must have.
WRONG = {
    "zero-units": (limits(hca="1", wqe_mib="0"), 1,
                   ("no queue-memory budget", "request rdma/wqe-mib in the resources of the sidecar's container",
                    "limits: {rdma/wqe-mib: 64}", "PURSER_QUEUE_MEMORY_BYTES: not set")),
    "no-units": (limits(hca="1"), 1,
                 ("no queue-memory budget", "request rdma/wqe-mib in the resources of the sidecar's container")),
    "no-device": (limits(wqe_mib="4"), 1,
                  ("no RDMA device was given to this container", "the node has rxe0", "limits: {rdma/hca: 1}")),
    "budget-above": (with_arguments("--budget=8Mi"), 2,
                     ("--budget 8 MiB (8,388,608 bytes) is more than the 4 MiB (4,194,304 bytes) that the device plugin allocated",
                      "4 units of rdma/wqe-mib", "lower it, leave it out, or request more units")),
    "wrong-device": (with_arguments("--device=mlx5_7"), 1,
                     ("no RDMA device mlx5_7 on this node, which has rxe0", "correct --device")),
    "no-volume": (lambda sidecar: sidecar.pop("volumeMounts"), 1,
                  ("no shared volume at /run/purser", "volumeMounts: [{name: purser, mountPath: /run/purser}]")),
    "read-only-volume": (lambda sidecar: sidecar["volumeMounts"][0].update(readOnly=True), 1,
                         ("/run/purser/sidecar.sock: EROFS", "take readOnly: true out of the sidecar's volumeMounts")),
}


def one_pod_of_all():
    """As ordinary containers, which run side by side and once."""
    pod = pods.sidecar_pod("wrong")
    del pod["spec"]["initContainers"]
    pod["spec"]["containers"] = []
    for name, (change, _, _) in WRONG.items():
        sidecar = pods.sidecar_of(changed(pods.sidecar_pod(name, units=4), change))
        for key in ("restartPolicy", "startupProbe", "readinessProbe", "livenessProbe", "ports"):
            sidecar.pop(key, None)
        pod["spec"]["containers"].append({**sidecar, "name": name})
    return pod


def deaf_pod():
    """Its application has no volume to find the sidecar in."""
    pod = pods.sidecar_pod("deaf", units=4, command=["purser", "budget"])
    pods.application_of(pod).pop("volumeMounts")
    return pod


@pytest.fixture(scope="module")
def neighbourhood(purser):
    """A namespace with a pod that is right and holds queue pairs, and beside it all that are wrong, which start together; and one that
    takes most of the units that these leave."""
    with a_namespace(purser, "bad-input") as name:
        right = pods.sidecar_pod("right", command=["purser", "qp", "create", "--count", "3"])
        purser.apply(right, one_pod_of_all(), changed(pods.sidecar_pod("no-units"), WRONG["no-units"][0]), deaf_pod(),
                     pods.sidecar_pod("another", units=900), namespace=name)
        purser.await_pod("right", name)
        yield name


def last_end(status):
    """How a container that is started again and again ended the last time."""
    return status["state"].get("terminated") or status.get("lastState", {}).get("terminated")


def end_of_sidecar(cluster, name, namespace):
    statuses = cluster.pod(name, namespace)["status"].get("initContainerStatuses")
    return last_end(statuses[0]) if statuses else None


def readiness(cluster, pod):
    """The code and the text of the plugin's /readyz."""
    *text, code = cluster.node(f"curl -s --max-time 10 -w '\\n%{{http_code}}' http://{pod['status']['podIP']}:9836/readyz").splitlines()
    return int(code), "\n".join(text)


# The first of the file: nobody may hold the device open.
def test_a_node_without_rdma(purser, namespace):
    plugin = purser.plugin_pod()
    bare = changed(pods.sidecar_pod("bare"), limits())
    plain = pods.sidecar_pod("plain")
    del plain["spec"]["initContainers"]
    purser.node("rdma link delete rxe0")
    try:
        wait_until(lambda: purser.resources() == {}, "the plugin withdraws what is gone", 60)
        purser.apply(pods.sidecar_pod("app", units=4), bare, plain, namespace=namespace)
        # The node goes on: a pod that wants no RDMA runs.
        purser.await_pod("plain", namespace)
        # One that asks for it waits for a node that has it, and is told so.
        wait_until(lambda: [e for e in purser.events(namespace, reason="FailedScheduling")
                            if e["involvedObject"]["name"] == "app" and "Insufficient rdma/hca" in e["message"]],
                   "the scheduler says why it waits", 60)
        # One that does not ask, but has a sidecar, is told what is missing.
        end = wait_until(lambda: end_of_sidecar(purser, "bare", namespace), "the sidecar has ended", 300)
        assert end["exitCode"] == 1
        for word in ("no RDMA device: /sys/class/infiniband has no entry", "no RDMA driver is loaded on this node", "request rdma/<pool>"):
            assert word in end["message"], end["message"]
        assert purser.pod("app", namespace)["status"]["phase"] == "Pending"

        assert "no RDMA device on this node: advertising 0 and looking again" in purser.logs(plugin["metadata"]["name"], PURSER_NAMESPACE, "device-plugin")
        code, text = readiness(purser, plugin)
        assert code == 200 and "rdma/hca: ready, 0 units: no usable RDMA device on this node" in text, text
    finally:
        purser.node("rdma link add rxe0 type rxe netdev dummy0")
    wait_until(lambda: purser.resources() == RESOURCES, "the node has its resources again", 60)
    purser.await_pod("app", namespace)
    assert purser.plugin_pod()["status"]["containerStatuses"][0]["restartCount"] == plugin["status"]["containerStatuses"][0]["restartCount"]


@pytest.mark.parametrize("name", WRONG)
def test_a_sidecar_that_cannot_do_its_work_says_why(purser, neighbourhood, name):
    _, code, words = WRONG[name]

    def ended():
        statuses = purser.pod("wrong", neighbourhood)["status"].get("containerStatuses", [])
        return next((status["state"].get("terminated") for status in statuses if status["name"] == name), None)

    end = wait_until(ended, "the sidecar has ended", 300)
    assert end["exitCode"] == code
    described = purser.kubectl("describe", "pod", "wrong", "--namespace", neighbourhood)
    for place in (end["message"], " ".join(described.split())):
        for word in words:
            assert word in place, place


def test_an_application_does_not_start_without_its_budget(purser, neighbourhood):
    """Its pod is not ready, is told so in an event, and goes on trying."""
    _, code, words = WRONG["no-units"]
    end = wait_until(lambda: end_of_sidecar(purser, "no-units", neighbourhood), "the sidecar has ended", 300)
    assert end["exitCode"] == code and all(word in end["message"] for word in words), end

    status = purser.pod("no-units", neighbourhood)["status"]
    assert status["phase"] == "Pending"
    assert status["containerStatuses"][0]["state"]["waiting"]["reason"] == "PodInitializing"
    conditions = {condition["type"]: condition for condition in status["conditions"]}
    assert conditions["Ready"]["status"] == "False" and conditions["Initialized"]["status"] == "False"
    assert "purser-sidecar" in conditions["Initialized"]["message"]

    def told():
        return [e for e in purser.events(neighbourhood, type="Warning", reason="BackOff")
                if e["involvedObject"]["name"] == "no-units" and "purser-sidecar" in e["message"]]

    wait_until(told, "an event says that the sidecar is started again and again", 300)
    # Its restarts would go on beside the tests that follow.
    purser.kubectl("delete", "pod", "no-units", "--namespace", neighbourhood, "--wait=false")


def test_a_fraction_of_a_unit_is_refused_by_the_api_server(purser, neighbourhood):
    with pytest.raises(Failed) as refusal:
        purser.apply(changed(pods.sidecar_pod("half"), limits(hca="1", wqe_mib="0.5")), namespace=neighbourhood)
    assert "limits[rdma/wqe-mib]" in str(refusal.value) and "must be an integer" in str(refusal.value)


def test_an_application_without_the_volume_is_told_so(purser, neighbourhood):
    purser.await_pod("deaf", neighbourhood, phase="Failed")
    assert purser.pod("deaf", neighbourhood)["status"]["containerStatuses"][0]["state"]["terminated"]["exitCode"] == 4
    log = purser.logs("deaf", neighbourhood, "application")
    assert "no sidecar answers at" in log and "/run/purser/sidecar.sock" in log and "mount" in log, log


def is_unharmed(cluster, namespace):
    """The pod that is right was never restarted and has its queue pairs."""
    status = cluster.pod("right", namespace)["status"]
    assert [c["restartCount"] for c in status["initContainerStatuses"] + status["containerStatuses"]] == [0, 0]
    assert all(c["ready"] for c in status["initContainerStatuses"] + status["containerStatuses"])
    return total(cluster.sidecar_metrics("right", namespace), "purser_queue_pairs") == 3


def test_the_rest_of_the_node_is_unharmed(purser, neighbourhood):
    assert is_unharmed(purser, neighbourhood)
    assert purser.resources() == RESOURCES
    assert purser.plugin_pod()["status"]["containerStatuses"][0]["ready"]
    purser.await_pod("another", neighbourhood)
    purser.kubectl("delete", "pod", "another", "--namespace", neighbourhood, "--now", "--wait=false")


def second_plugin(cluster, namespace):
    """Its pod, once there is one."""
    pods_there = cluster.get("pods", "--namespace", namespace, "-l", "app.kubernetes.io/component=device-plugin")["items"]
    return pods_there[0] if pods_there else None


@contextlib.contextmanager
def other_releases(cluster, releases):
    """More Pursers on the same node: {name: values}, each in a namespace of its own, of which it yields the names."""
    with contextlib.ExitStack() as namespaces, concurrent.futures.ThreadPoolExecutor() as threads:
        names = {release: namespaces.enter_context(a_namespace(cluster, release, "privileged")) for release in releases}
        try:
            for release, values in releases.items():
                cluster.helm("install", release, ROOT / "charts/purser", "--namespace", names[release], "--values", VALUES, *values)
            yield names
        finally:
            list(threads.map(lambda release: cluster.helm("uninstall", release, "--namespace", names[release], "--wait", "--timeout=300s",
                                                          timeout=330), releases))


def test_more_plugins_on_the_node(purser, neighbourhood):
    """One of the same resources ends and leaves the first alone; one with names of its own serves beside the first."""
    first = purser.plugin_pod()
    pool = '[{"resourcePrefix": "second.example", "resourceName": "hca", "selectors": {"devices": ["mlx5_*"]}}]'
    own_names = ["--set-json", "config.resources.pools=" + pool, "--set", "sidecar.hcaResource=second.example/hca",
                 "--set", "config.resources.queueMemory.enabled=false"]
    with other_releases(purser, {"same": [], "own": own_names}) as namespaces:
        the_same_resources_end(purser, namespaces["same"])
        a_pool_that_selects_no_device_advertises_none_and_says_so(purser, namespaces["own"])
    assert purser.resources() == RESOURCES
    now = purser.plugin_pod()
    assert now["metadata"]["uid"] == first["metadata"]["uid"]
    assert now["status"]["containerStatuses"][0]["restartCount"] == first["status"]["containerStatuses"][0]["restartCount"]
    assert readiness(purser, now)[0] == 200
    assert is_unharmed(purser, neighbourhood)


def the_same_resources_end(cluster, namespace):
    def ended():
        pod = second_plugin(cluster, namespace)
        statuses = pod["status"].get("containerStatuses") if pod else None
        return last_end(statuses[0]) if statuses else None

    end = wait_until(ended, "the second plugin has ended", 300)
    assert end["exitCode"] == 1
    for word in ("another device plugin serves rdma/hca on this node", "purser-rdma_hca-", "uninstall one of them"):
        assert word in end["message"], end["message"]
    wait_until(lambda: cluster.events(namespace, type="Warning", reason="BackOff"), "an event says that it is started again and again", 300)
    assert not second_plugin(cluster, namespace)["status"]["containerStatuses"][0]["ready"]
    assert cluster.resources() == RESOURCES


def a_pool_that_selects_no_device_advertises_none_and_says_so(cluster, namespace):
    name = wait_until(lambda: second_plugin(cluster, namespace), "there is a pod", 30)["metadata"]["name"]
    pod = cluster.await_pod(name, namespace)
    log = cluster.logs(name, namespace, "device-plugin")
    for word in ("no RDMA device of this node is selected by the pool", "second.example/hca", "rxe0"):
        assert word in log, log
    code, text = readiness(cluster, pod)
    assert code == 200 and "second.example/hca: ready, 0 units" in text, text
    assert cluster.the_node()["status"]["allocatable"].get("second.example/hca", "0") == "0"
    assert cluster.resources() == RESOURCES


def config_map(cluster):
    return cluster.get("configmap", "purser", "--namespace", PURSER_NAMESPACE)


def set_config(cluster, text):
    """Puts it into the ConfigMap, and waits until the kubelet has brought it into the plugin's pod."""
    pod = cluster.plugin_pod()["metadata"]
    cluster.kubectl("patch", "configmap", "purser", "--namespace", PURSER_NAMESPACE, "--type=merge", "--patch-file=/dev/stdin",
                    stdin=yaml.safe_dump({"data": {"config.yaml": text}}))
    # A change of the pod makes the kubelet look now, not within a minute or two.
    cluster.kubectl("annotate", "pod", pod["name"], "--namespace", PURSER_NAMESPACE, "--overwrite", f"purser.dev/looked-at={hash(text)}")
    path = f"/var/lib/kubelet/pods/{pod['uid']}/volumes/kubernetes.io~configmap/config/config.yaml"
    wait_until(lambda: cluster.node("cat " + path) == text, "the pod sees the new configuration", 300)


def test_a_config_map_that_is_broken_while_the_plugin_runs(purser, neighbourhood):
    good = config_map(purser)["data"]["config.yaml"]
    broken = good.replace("rdmaHcaMax: 100", "rdmaHcaMaximum: 100").replace("capacity: 1Gi", "capacity: plenty")
    restarts = purser.plugin_pod()["status"]["containerStatuses"][0]["restartCount"]
    name = purser.plugin_pod()["metadata"]["name"]
    try:
        set_config(purser, broken)
        # The plugin goes on with what it read at its start.
        assert purser.plugin_pod()["status"]["containerStatuses"][0]["restartCount"] == restarts
        assert readiness(purser, purser.plugin_pod())[0] == 200
        assert purser.resources() == RESOURCES

        # When it starts again it says what is wrong, all at once.
        purser.node("kill $(pidof purser-device-plugin)")

        def ended():
            end = last_end(purser.plugin_pod()["status"]["containerStatuses"][0])
            return end if end and end["exitCode"] == 2 else None

        message = wait_until(ended, "the plugin ends with exit code 2", 300)["message"]
        for word in ("the configuration is not valid", "/etc/purser/config.yaml:3:5: resources.pools[0].rdmaHcaMaximum: unknown key",
                     'did you mean "rdmaHcaMax"?', '/etc/purser/config.yaml:6:15: resources.queueMemory.capacity: "plenty" is not a quantity'):
            assert word in message, message
        wait_until(lambda: [e for e in purser.events(PURSER_NAMESPACE, type="Warning", reason="BackOff") if e["involvedObject"]["name"] == name],
                   "an event says that it is started again and again", 300)
        assert not purser.plugin_pod()["status"]["containerStatuses"][0]["ready"]
        assert is_unharmed(purser, neighbourhood)
    finally:
        set_config(purser, good)
        purser.kubectl("delete", "pod", name, "--namespace", PURSER_NAMESPACE, "--wait", "--timeout=300s", timeout=330)
        wait_until(lambda: purser.resources() == RESOURCES, "the node has its resources again", 120)
    assert is_unharmed(purser, neighbourhood)
