# SPDX-License-Identifier: Apache-2.0
"""What the pods of the chart may do."""

import os
import unittest

import yaml

from chart import CHART, ROOT, of_kind, pod_specs, render, sidecar


def granted(values="nameOverride="):
    """What the DaemonSet's pod has beside a container of its own."""
    pod = of_kind(render("--kube-version", "1.36.0", "--set", values), "DaemonSet")["spec"]["template"]["spec"]
    container = pod["containers"][0]
    security = container["securityContext"]
    names = {"hostPID": "host pid namespace", "hostNetwork": "host network", "hostIPC": "host ipc namespace"}
    found = {name for key, name in names.items() if pod.get(key)}
    assert security["readOnlyRootFilesystem"]
    if security.get("privileged"):
        assert set(security) == {"runAsUser", "readOnlyRootFilesystem", "privileged"}, "privileged excludes the rest"
        found.add("privileged")
    else:
        assert security["capabilities"]["drop"] == ["ALL"] and security["allowPrivilegeEscalation"] is False
        assert security["seccompProfile"] == {"type": "RuntimeDefault"}
        found |= set(security["capabilities"].get("add", []))
    found |= {"no AppArmor profile"} if security.get("appArmorProfile") == {"type": "Unconfined"} else set()
    mounts = {mount["name"]: mount for mount in container["volumeMounts"]}
    for volume in pod["volumes"]:
        mount = mounts.pop(volume["name"])
        if "hostPath" in volume:
            found.add(volume["hostPath"]["path"] + (" (read-only)" if mount.get("readOnly") else ""))
    assert not mounts, mounts
    return found | {"allocatable memory" for variable in container.get("env", []) if variable["name"] == "PURSER_NODE_ALLOCATABLE_MEMORY"}


class Privileges(unittest.TestCase):
    def test_the_daemon_set_has_the_least(self):
        pod = of_kind(render(), "DaemonSet")["spec"]["template"]["spec"]
        self.assertFalse({"hostNetwork", "hostPID", "hostIPC", "hostUsers"} & set(pod))
        self.assertFalse(pod["automountServiceAccountToken"])
        security = pod["containers"][0]["securityContext"]
        self.assertEqual(security["capabilities"], {"drop": ["ALL"]})
        self.assertTrue(security["readOnlyRootFilesystem"])
        self.assertFalse(security["allowPrivilegeEscalation"])
        self.assertEqual(security["seccompProfile"], {"type": "RuntimeDefault"})
        self.assertNotIn("privileged", security)
        self.assertNotIn("appArmorProfile", security)

    def test_each_switch_of_the_node_view_gives_one_privilege(self):
        base = granted()
        self.assertEqual(base, {"/var/lib/kubelet/device-plugins", "/dev (read-only)", "/var/log/containers (read-only)",
                                "/var/lib/kubelet/pod-resources (read-only)", "allocatable memory"})
        for switches, gives in ((["hostPID"], {"host pid namespace"}), (["hostPID", "sysPtrace"], {"host pid namespace", "SYS_PTRACE", "no AppArmor profile"}),
                                (["netAdmin"], {"NET_ADMIN"}), (["cgroups"], {"/sys/fs/cgroup (read-only)"})):
            with self.subTest(switches):
                self.assertEqual(granted(",".join(f"devicePlugin.nodeView.{switch}=true" for switch in switches)), base | gives)
        for switch, takes in (("podResources", {"/var/lib/kubelet/pod-resources (read-only)"}), ("containerNames", {"/var/log/containers (read-only)"}),
                              ("allocatableMemory", {"allocatable memory"}),
                              ("enabled", {"/var/lib/kubelet/pod-resources (read-only)", "/var/log/containers (read-only)", "allocatable memory"})):
            with self.subTest(switch):
                self.assertEqual(granted(f"devicePlugin.nodeView.{switch}=false"), base - takes)
        everything = "hostPID=true,sysPtrace=true,netAdmin=true,cgroups=true,enabled=false"
        self.assertEqual(granted(",".join(f"devicePlugin.nodeView.{switch}" for switch in everything.split(","))),
                         {"/var/lib/kubelet/device-plugins", "/dev (read-only)"})
        registry = "/var/lib/kubelet/plugins_registry"
        self.assertEqual(granted("devicePlugin.registration=auto"), base | {registry})
        self.assertEqual(granted("devicePlugin.registration=plugins-registry"), base - {"/var/lib/kubelet/device-plugins"} | {registry})
        self.assertEqual(granted("devicePlugin.openDevices=true"), base | {"privileged"})
        self.assertEqual(granted("devicePlugin.openDevices=true,devicePlugin.nodeView.hostPID=true,devicePlugin.nodeView.sysPtrace=true"),
                         base | {"privileged", "host pid namespace"})
        self.assertEqual(granted("devicePlugin.hostNetwork=true"), base | {"host network"})
        self.assertEqual(granted("config.cdi.enabled=true"), base | {"/var/run/cdi"})
        self.assertEqual(granted("config.cdi.enabled=true,config.cdi.directory=/etc/cdi/"), base | {"/etc/cdi"})
        self.assertEqual(granted("config.cdi.enabled=false"), base)

    def test_no_directory_is_mounted_that_the_plugin_is_not_told_of(self):
        for way in ("kubelet-socket", "plugins-registry", "auto"):
            pod = of_kind(render("--set", f"devicePlugin.registration={way},devicePlugin.kubeletRootDir=/a"), "DaemonSet")["spec"]["template"]["spec"]
            self.assertIn(f"--registration={way}", pod["containers"][0]["args"])
            self.assertIn("--kubelet-root-dir=/a", pod["containers"][0]["args"])
            for volume in pod["volumes"]:
                if volume.get("hostPath", {}).get("path", "").startswith("/a"):
                    mount = next(m for m in pod["containers"][0]["volumeMounts"] if m["name"] == volume["name"])
                    self.assertEqual(mount["mountPath"], volume["hostPath"]["path"])

    def test_the_plugin_is_told_what_it_has(self):
        def arguments(values):
            return of_kind(render("--set", values), "DaemonSet")["spec"]["template"]["spec"]["containers"][0]["args"]

        self.assertIn("--node-view=off", arguments("devicePlugin.nodeView.enabled=false"))
        self.assertIn("--cgroup-root=/host/cgroup", arguments("devicePlugin.nodeView.cgroups=true"))
        self.assertFalse([a for a in arguments("devicePlugin.nodeView.enabled=true") if "node-view" in a or "cgroup" in a])

    def test_a_memory_limit_is_not_taken_for_the_memory_of_the_node(self):
        self.assertNotIn("allocatable memory", granted("devicePlugin.resources.limits.memory=64Mi"))
        self.assertIn("allocatable memory", granted("devicePlugin.resources.limits.cpu=1"))

    def test_apparmor_is_named_as_the_version_does(self):
        for version, field in (("1.29.3", False), ("1.30.0", True), ("v1.36.1", True)):
            pod = of_kind(render("--kube-version", version, "--set", "devicePlugin.nodeView.hostPID=true,devicePlugin.nodeView.sysPtrace=true"),
                          "DaemonSet")["spec"]["template"]
            annotation = pod["metadata"]["annotations"].get("container.apparmor.security.beta.kubernetes.io/device-plugin")
            self.assertEqual(pod["spec"]["containers"][0]["name"], "device-plugin")
            self.assertEqual(annotation, None if field else "unconfined")
            self.assertEqual(pod["spec"]["containers"][0]["securityContext"].get("appArmorProfile"), {"type": "Unconfined"} if field else None)

    def test_each_privilege_is_in_the_documentation(self):
        with open(os.path.join(ROOT, "docs/operations.md"), encoding="utf-8") as file:
            text = file.read()
        with open(os.path.join(CHART, "values.yaml"), encoding="utf-8") as file:
            values = yaml.safe_load(file)["devicePlugin"]
        table = text[text.index("## Privileges"):text.index("## Upgrade")]
        for switch, default in [*((name, values[name]) for name in ("hostNetwork", "openDevices")), *((f"nodeView.{name}", on) for name, on in values["nodeView"].items())]:
            with self.subTest(switch):
                self.assertRegex(table, rf"\| `{switch}` \| {'on' if default else 'off'} \|")
        for word in ("`device-plugins`", "`/dev`", "uid 0", "`SYS_PTRACE`", "`NET_ADMIN`", "`IPC_LOCK`"):
            self.assertIn(word, table)

    def test_containers_of_pods_are_restricted(self):
        for name, spec in [("helm test", of_kind(render(), "Pod", "purser-test")["spec"]), *pod_specs()]:
            for container in spec.get("initContainers", []) + spec["containers"]:
                with self.subTest(name, container=container["name"]):
                    security = container["securityContext"]
                    self.assertEqual(security["capabilities"], {"drop": ["ALL"]})
                    self.assertTrue(security["runAsNonRoot"])
                    self.assertTrue(security["readOnlyRootFilesystem"])
                    self.assertFalse(security["allowPrivilegeEscalation"])
                    self.assertEqual(security["seccompProfile"], {"type": "RuntimeDefault"})

    def test_ipc_lock_takes_uid_0(self):
        security = sidecar(ipcLock=True)["securityContext"]
        self.assertEqual(security["runAsUser"], 0)
        self.assertEqual(security["capabilities"], {"drop": ["ALL"], "add": ["IPC_LOCK"]})
