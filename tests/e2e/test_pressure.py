# SPDX-License-Identifier: Apache-2.0
"""The sidecar follows what bounds it: the node's memory, which another pod fills, and its own memory limit."""

import contextlib
import re

import conftest
import node
import pods
import pytest
import yaml
from kube import ROOT, total, value, wait_until

MIB = 2**20
# Of 3 GiB, of which little is in use by itself: reached long before anybody is killed.
CONFIG = {"version": "v1",
          "memoryPressure": {"node": {"tight": 0.4, "critical": 0.55}, "container": {"tight": 0.97, "critical": 0.98},
                             "someStalled": 1, "allStalled": 1},
          "classes": [{"name": "core", "core": True}]}


def with_config(pod):
    """Its sidecar reads CONFIG from a ConfigMap."""
    pod["spec"]["volumes"].append({"name": "config", "configMap": {"name": "sidecar"}})
    sidecar = pods.sidecar_of(pod)
    sidecar["volumeMounts"].append({"name": "config", "mountPath": "/etc/purser"})
    sidecar["args"].append("--config=/etc/purser/sidecar.yaml")
    return pod, {"apiVersion": "v1", "kind": "ConfigMap", "metadata": {"name": "sidecar"}, "data": {"sidecar.yaml": yaml.safe_dump(CONFIG)}}


def filler():
    """A pod within its limits that can fill the node's memory."""
    pod = pods.sidecar_pod("filler")
    del pod["spec"]["initContainers"]
    application = pods.application_of(pod)
    application["resources"] = {"requests": {"cpu": "10m", "memory": "64Mi"}, "limits": {"memory": "1500Mi"}}
    application["volumeMounts"] = [{"name": "memory", "mountPath": "/memory"}]
    pod["spec"]["volumes"] = [{"name": "memory", "emptyDir": {"medium": "Memory"}}]
    return pod


def fill(cluster, namespace, used):
    """Until that part of the node's memory is in use."""
    cluster.execute("filler", namespace, "application", "sh", "-c", f"""
        used() {{ awk '/^MemTotal/ {{ total = $2 }} /^MemAvailable/ {{ free = $2 }} END {{ print int(1000 * (total - free) / total) }}' /proc/meminfo; }}
        for i in $(seq 1 70); do
          [ "$(used)" -lt {int(used * 1000)} ] || exit 0
          dd if=/dev/zero of=/memory/$i.$(used) bs=1M count=20 2>/dev/null
        done
        exit 1""")


def create(cluster, namespace, *options):
    return cluster.execute("app", namespace, "application", "purser", "qp", "create", "--detach", *options, check=False)


def pressure(cluster, namespace):
    return int(value(cluster.sidecar_metrics("app", namespace), "purser_memory_pressure_state", scope="node"))


def await_pressure(cluster, namespace, state):
    wait_until(lambda: pressure(cluster, namespace) == state, f"the pressure on the node is {state}", 60)


@contextlib.contextmanager
def idle_reserve(cluster, namespace):
    """A client of the pod's sidecar that has had 24 queue pairs which share a completion queue, and has 2."""
    uid = cluster.pod("app", namespace)["metadata"]["uid"]
    # By a short way: a socket's path has at most 107 characters.
    volume = f"/var/lib/kubelet/pods/{uid}/volumes/kubernetes.io~empty-dir/purser"
    cluster.node(f"ln -sfn {volume} /run/app-volume; setsid {ROOT}/build/dev/tests/integration/sidecar_client /run/app-volume/sidecar.sock 24 shared 2 "
                 ">/run/sidecar_client.log 2>&1 </dev/null & for i in $(seq 1 600); do grep -q . /run/sidecar_client.log && break; sleep 0.1; done")
    assert cluster.node("cat /run/sidecar_client.log") == "holding 2\n"
    try:
        yield
    finally:
        cluster.node("pkill -KILL -x sidecar_client")


@pytest.fixture(scope="module")
def namespace(purser):
    """One with the pods of both tests, which start together."""
    with conftest.a_namespace(purser, "pressure") as name:
        app, config = with_config(pods.sidecar_pod("app", units=8))
        resized = pods.sidecar_pod("resized", command=["purser", "qp", "create", "--count", "3"])
        purser.apply(config, app, filler(), resized, namespace=name)
        for pod in ("app", "filler", "resized"):
            purser.await_pod(pod, name)
        yield name


def test_a_pod_at_its_budget_while_another_fills_the_node(purser, namespace):
    assert pressure(purser, namespace) == 0
    with idle_reserve(purser, namespace):
        # At its budget: not one more of these in its class.
        assert create(purser, namespace, "--count", "1000", "--send-wr", "1024").returncode == 3
        at_its_budget(purser, namespace)


def at_its_budget(cluster, namespace):
    held = total(cluster.sidecar_metrics("app", namespace), "purser_queue_pairs")
    assert held > 2

    fill(cluster, namespace, 0.45)
    await_pressure(cluster, namespace, 1)
    refused = create(cluster, namespace, "--send-wr", "16")
    assert refused.returncode == 3 and "node" in refused.stderr and "memory is tight" in refused.stderr, refused.stderr
    assert create(cluster, namespace, "--send-wr", "16", "--class", "core").returncode == 0
    held += 1
    before, areas = cluster.sidecar_metrics("app", namespace), cluster.queue_areas()
    assert total(before, "purser_given_back_bytes_total") == 0

    fill(cluster, namespace, 0.58)
    await_pressure(cluster, namespace, 2)
    refused = create(cluster, namespace, "--send-wr", "16", "--class", "core")
    assert refused.returncode == 3 and "memory is critical" in refused.stderr, refused.stderr
    # The idle reserve is given back: by the sidecar's account and by the kernel's.
    wait_until(lambda: cluster.queue_areas() < areas, "the kernel has the idle reserve back", 30)
    after = cluster.sidecar_metrics("app", namespace)
    returned = value(after, "purser_given_back_bytes_total")
    print(f"{returned:.0f} bytes of an idle completion queue were given back")
    assert returned > 0
    assert total(after, "purser_queue_memory_bytes", charged_to="node") == total(before, "purser_queue_memory_bytes", charged_to="node") - returned
    assert areas - cluster.queue_areas() == pytest.approx(returned, rel=0.02)

    cluster.execute("filler", namespace, "application", "sh", "-c", "rm /memory/*")
    await_pressure(cluster, namespace, 0)
    log = cluster.logs("app", namespace, "purser-sidecar")
    assert re.findall(r'msg="memory pressure" scope=node state=(\w+)', log) == ["tight", "critical", "tight", "normal"], log
    assert create(cluster, namespace, "--send-wr", "16").returncode == 0
    # Nothing was killed, and what there was is there.
    assert set(node.restarts(cluster, namespace).values()) == {0}
    assert total(cluster.sidecar_metrics("app", namespace), "purser_queue_pairs") == held + 1


def test_a_memory_limit_that_is_changed_in_place_is_followed(purser, namespace):
    def budget():
        return value(purser.sidecar_metrics("resized", namespace), "purser_queue_memory_budget_bytes", source="cgroup", charged_to="container")

    assert budget() == 24 * MIB
    cgroup = purser.node(f"dirname $(grep -l ^{node.process(purser, 'resized', namespace, 'purser-sidecar')}$ "
                         "$(find /sys/fs/cgroup/kubepods -name cgroup.procs))").strip()
    address = purser.pod("resized", namespace)["status"]["podIP"] + ":9837"
    for mebibytes in (96, 40):
        resources = {kind: {"memory": f"{mebibytes}Mi"} for kind in ("requests", "limits")}
        purser.kubectl("patch", "pod", "resized", "--namespace", namespace, "--subresource=resize", "--patch-file=/dev/stdin",
                       stdin=yaml.safe_dump({"spec": {"initContainers": [{"name": "purser-sidecar", "resources": resources}]}}))
        took = float(node.measure(purser, f"""
            until [ "$(cat {cgroup}/memory.max)" = {mebibytes * MIB} ]; do sleep 0.05; done
            begin=$EPOCHREALTIME
            until curl -s http://{address}/metrics | grep -q '^purser_queue_memory_budget_bytes{{source="cgroup".* {mebibytes // 2 * MIB}$'; do sleep 0.05; done
            awk -v begin=$begin -v end=$EPOCHREALTIME 'BEGIN {{ print end - begin }}'"""))
        print(f"a limit of {mebibytes} MiB was followed after {took:.1f} s")
        assert took <= 2
    assert set(node.restarts(purser, namespace).values()) == {0}
    assert total(purser.sidecar_metrics("resized", namespace), "purser_queue_pairs") == 3
