# SPDX-License-Identifier: Apache-2.0
"""Pods for the tests, made of the snippet that users copy (manifests/examples/sidecar-snippet.yaml)."""

import examples

TEST_IMAGE = "purser/test-application:test"


def snippet():
    """The pod specification of the snippet's Deployment."""
    return examples.the_object("sidecar-snippet")["spec"]["template"]["spec"]


def sidecar_pod(name, units=64, command=("sleep", "infinity"), image=TEST_IMAGE, arguments=(), **spec):
    """A pod with the sidecar, which has `units` of rdma/wqe-mib, and one application container called "application".

    The sidecar reserves no memory for its queues: on the test cluster the node does. `arguments` are added to the
    sidecar's own; `spec` goes into the pod's specification.
    """
    pod = snippet()
    sidecar, application = pod["initContainers"][0], pod["containers"][0]
    sidecar["imagePullPolicy"] = "Never"
    sidecar["args"] = [a for a in sidecar["args"] if not a.startswith("--memory-limit-fraction")] + list(arguments)
    sidecar["resources"] = {
        "requests": {"cpu": "10m", "memory": "48Mi"},
        "limits": {"memory": "48Mi", "rdma/hca": "1", "rdma/wqe-mib": str(units)},
    }
    application.update(name="application", image=image, imagePullPolicy="Never", command=list(command))
    application.pop("args", None)
    pod.update(terminationGracePeriodSeconds=2, automountServiceAccountToken=False, restartPolicy="Never", **spec)
    return {"apiVersion": "v1", "kind": "Pod", "metadata": {"name": name}, "spec": pod}


def sidecar_of(pod):
    return pod["spec"]["initContainers"][0]


def application_of(pod):
    return pod["spec"]["containers"][0]


def add_container(pod, name, command):
    """One more application container, like the first."""
    pod["spec"]["containers"].append({**application_of(pod), "name": name, "command": list(command)})


def deployment(pod):
    """A Deployment of one such pod."""
    name = pod["metadata"]["name"]
    template = {"metadata": {"labels": {"app": name}}, "spec": {**pod["spec"], "restartPolicy": "Always"}}
    return {"apiVersion": "apps/v1", "kind": "Deployment", "metadata": {"name": name},
            "spec": {"selector": {"matchLabels": {"app": name}}, "template": template}}
