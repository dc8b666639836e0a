# SPDX-License-Identifier: Apache-2.0
"""A real Prometheus scrapes plugin and sidecar by the chart's PodMonitors, and answers every query of the dashboard."""

import pytest

import conftest
import examples
import pods
from kube import ROOT, wait_until
from prometheus import Prometheus, promtool


@pytest.fixture(scope="module")
def namespace(purser):
    """One whose pod, "app", the tests share."""
    with conftest.a_namespace(purser, "prometheus") as name:
        yield name


@pytest.fixture
def prometheus(purser):
    server = Prometheus(purser)
    try:
        server.start()
        yield server
    finally:
        server.stop()


def use(cluster, namespace):
    """Posts, completions, a full send queue, and a refusal."""

    def application(command, code):
        done = cluster.execute("app", namespace, "application", "sh", "-c", command, check=False)
        assert done.returncode == code, done.stdout + done.stderr

    application("purser qp ping --listen 127.0.0.1:7471 & purser qp ping --connect 127.0.0.1:7471 --iterations 20 --bytes 1Mi --chunk 64Ki && wait", 0)
    application("purser qp fill --send-wr 100", 0)
    application("purser qp create --count 100 --send-wr 4096 --send-sge 16 --detach", 3)


def test_prometheus_answers_every_query_of_the_dashboard(purser, prometheus, namespace):
    node = purser.the_node()["metadata"]["name"]

    def up(job, **labels):
        return [metric for metric, up in prometheus.query(f'up{{job="{job}"}}') if up == 1 and labels.items() <= metric.items()]

    wait_until(lambda: up("purser-device-plugin", node=node), "the plugin is scraped", 180)
    purser.apply(pods.sidecar_pod("app"), namespace=namespace)
    # As users copy it.
    purser.kubectl("apply", "--namespace", namespace, "-f", examples.DIRECTORY / "sidecar-snippet.yaml")
    purser.await_pod("app", namespace)
    own = {"namespace": namespace, "pod": "app"}
    wait_until(lambda: up("purser-sidecar", node=node, container="purser-sidecar", **own), "the sidecar is scraped", 180)
    # Twice, so that an increase is seen.
    wait_until(lambda: prometheus.query(f'count_over_time(purser_build_info{{namespace="{namespace}"}}[1m]) >= 2'),
               "the sidecar was scraped before anything happened", 180)
    use(purser, namespace)

    done = prometheus.dashboard_queries(wait=180)
    assert done.returncode == 0, done.stdout + done.stderr
    print(done.stdout)

    # What is graphed is what happened.
    pod = f'namespace="{namespace}",pod="app"'
    for expression in (f'purser_post_failures_total{{{pod},operation="send",errno="ENOMEM"}}',
                       f'purser_admissions_total{{{pod},result="refused",reason="budget"}}',
                       f'purser_completions_total{{{pod},status="SUCCESS"}}',
                       f'purser_posts_total{{{pod}}}', f'purser_queue_memory_bytes{{{pod},charged_to="node"}}'):
        wait_until(lambda expression=expression: sum(number for _, number in prometheus.query(expression)) > 0, expression, 60)
    snippet = f'sum(purser_queue_pairs{{namespace="{namespace}",pod=~"rdma-app-.*"}})'
    wait_until(lambda: prometheus.query(snippet + " == 8"), "the application of the snippet's Deployment has its eight queue pairs", 180)
    assert prometheus.query(f'purser_queue_memory_budget_bytes{{{pod},source="plugin"}}')[0][1] == 64 * 2**20
    capacity = {metric["resource"]: count for metric, count in prometheus.query("purser_device_plugin_capacity")}
    assert capacity == {"rdma/hca": 100, "rdma/wqe-mib": 1024}

    # The alerts are loaded, and the one that is meant for it fires.
    rules = [rule for group in prometheus.api("rules")["groups"] for rule in group["rules"]]
    assert len(rules) >= 10
    wait_until(lambda: all(rule["health"] == "ok" for group in prometheus.api("rules")["groups"] for rule in group["rules"]),
               "every alert is evaluated", 90)

    def firing():
        return [alert["labels"] for alert in prometheus.api("alerts")["alerts"] if alert["state"] == "firing"]

    expected = {"alertname": "PurserQueuePairsRefused", "namespace": namespace, "pod": "app", "reason": "budget"}
    wait_until(lambda: [labels for labels in firing() if expected.items() <= labels.items()], "the refusal's alert fires", 90)
    assert {labels["alertname"] for labels in firing() if labels.get("namespace") == namespace} == {"PurserQueuePairsRefused"}


def test_promtool_finds_nothing_wrong(purser, namespace):
    """In what plugin and sidecar show after that use."""
    addresses = {"plugin": purser.plugin_pod()["status"]["podIP"] + ":9836", "sidecar": purser.pod("app", namespace)["status"]["podIP"] + ":9837"}
    for name, address in addresses.items():
        text = purser.node(f"curl -sf --max-time 10 http://{address}/metrics")
        assert "purser_" in text, name
        done = promtool("check", "metrics", stdin=text)
        assert (done.returncode, done.stdout + done.stderr) == (0, ""), name
    done = promtool("check", "rules", ROOT / "charts/purser/rules/purser.yaml")
    assert done.returncode == 0, done.stdout + done.stderr
