# SPDX-License-Identifier: Apache-2.0
"""What the pods of the chart may do."""

import os
import unittest

from chart import ROOT, of_kind, pod_specs, render, sidecar


class Privileges(unittest.TestCase):
    def test_the_daemon_set_has_the_least(self):
        pod = of_kind(render(), "DaemonSet")["spec"]["template"]["spec"]
        self.assertFalse({"hostNetwork", "hostPID", "hostIPC"} & {key for key in pod if pod[key]})
        self.assertFalse(pod["automountServiceAccountToken"])
        security = pod["containers"][0]["securityContext"]
        self.assertEqual(security["capabilities"], {"drop": ["ALL"]})
        self.assertTrue(security["readOnlyRootFilesystem"])
        self.assertFalse(security["allowPrivilegeEscalation"])
        paths = {v["hostPath"]["path"] for v in pod["volumes"] if "hostPath" in v}
        self.assertEqual(paths, {"/var/lib/kubelet/device-plugins", "/dev"})
        read_only = {m["name"] for m in pod["containers"][0]["volumeMounts"] if m.get("readOnly")}
        self.assertEqual(read_only, {"dev", "config"})

    def test_each_privilege_is_in_the_documentation(self):
        with open(os.path.join(ROOT, "docs/operations.md"), encoding="utf-8") as file:
            text = file.read()
        for word in ("`device-plugins`", "`/dev`", "uid 0", "`hostNetwork`", "`IPC_LOCK`"):
            self.assertIn(word, text)

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
