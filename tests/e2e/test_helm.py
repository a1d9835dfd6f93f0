"""The Helm chart, rendered by Helm and checked against the schemas of Kubernetes."""

import subprocess
from pathlib import Path
from typing import Any

import pytest
import yaml
from typer.main import get_command

from service.main import app
from tests.factories.go import go_program
from trimtab_agent.config import parse_server
from trimtab_agent.main import parser as agent_parser

ROOT = Path(__file__).resolve().parents[2]
CHART = ROOT / "deploy" / "helm" / "trimtab"
HELM = "helm.sh/helm/v3/cmd/helm@v3.22.0"
KUBERNETES = "1.30"
MINIMAL: dict[str, Any] = {
    "host": "tune.example.org",
    "image": {"repository": "registry.example.org/trimtab"},
    "keycloak": {"issuer": "https://sso.example.org/realms/trimtab"},
}
DIGEST = "sha256:" + "a" * 64
EVERYTHING: dict[str, Any] = {
    **MINIMAL,
    "image": {"repository": "registry.example.org/trimtab", "digest": DIGEST, "pullSecrets": ["registry"]},
    "secrets": {"listenDatabase": {"name": "trimtab"}, "adminToken": {"name": "trimtab"}},
    "keycloak": {**MINIMAL["keycloak"], "jwksUrl": "http://keycloak:8080/certs"},
    "trustedProxies": "10.0.0.0/8",
    "environment": {"TRIMTAB_LIMIT_STUDIES": 1000},
    "worker": {"autoscaling": {"enabled": True, "prometheus": "http://prometheus.monitoring:9090"}},
    "grpc": {"service": {"type": "LoadBalancer", "annotations": {"example.org/pool": "public"}}},
    "ingress": {"className": "nginx", "annotations": {"example.org/a": "b"}, "tlsSecret": "tune-tls"},
    "agent": {
        "enabled": True,
        "kind": "DaemonSet",
        "image": {"repository": "registry.example.org/agent", "tag": "7"},
        "components": "components",
        "options": ["--trial-cores", "2"],
        "stateHostPath": "/var/lib/trimtab-agent",
        "nodeSelector": {"pool": "tuning"},
        "tolerations": [{"key": "tuning", "operator": "Exists"}],
    },
    "networkPolicies": {
        "ingressFrom": [{"namespaceSelector": {"matchLabels": {"name": "ingress"}}}],
        "prometheusFrom": [{"namespaceSelector": {"matchLabels": {"name": "monitoring"}}}],
    },
    "nodeSelector": {"pool": "services"},
    "tolerations": [{"key": "services", "operator": "Exists"}],
    "affinity": {"podAntiAffinity": {"preferredDuringSchedulingIgnoredDuringExecution": []}},
}
AGENTS = {**MINIMAL, "agent": {"enabled": True, "image": {"repository": "registry.example.org/agent"}}}

pytestmark = pytest.mark.slow("builds Helm from source")


@pytest.fixture(scope="module")
def helm(programs_start: None) -> str:
    return go_program("helm", HELM)


def template(helm: str, values: dict[str, Any], folder: Path) -> "subprocess.CompletedProcess[str]":
    file = folder / "values.yaml"
    file.write_text(yaml.safe_dump(values))
    command: list[str | Path] = [
        helm,
        "template",
        "tuning",
        CHART,
        "--namespace",
        "tuning",
        "--kube-version",
        KUBERNETES,
        "--values",
        file,
    ]
    return subprocess.run(command, capture_output=True, text=True, check=False)


def render(helm: str, values: dict[str, Any], folder: Path) -> list[dict[str, Any]]:
    done = template(helm, values, folder)
    assert done.returncode == 0, done.stderr
    return [document for document in yaml.safe_load_all(done.stdout) if document]


def pods(documents: list[dict[str, Any]]) -> dict[str, dict[str, Any]]:
    """Return the specifications of the pods by component."""
    found = {}
    for document in documents:
        if document["kind"] in ("Deployment", "DaemonSet", "Job"):
            pod = document["spec"]["template"]
            found[pod["metadata"]["labels"]["app.kubernetes.io/component"]] = pod["spec"]
    return found


@pytest.mark.parametrize("values", [MINIMAL, AGENTS, EVERYTHING], ids=["minimal", "agents", "everything"])
def test_every_object_is_valid(helm: str, values: dict[str, Any], tmp_path: Path) -> None:
    validator = pytest.importorskip("kubernetes_validate", reason="the group `release` is not installed")
    documents = render(helm, values, tmp_path)
    kinds = {document["kind"] for document in documents}
    assert {"Deployment", "Service", "Ingress", "Job", "NetworkPolicy", "PodDisruptionBudget"} <= kinds
    names = [(document["kind"], document["metadata"]["name"]) for document in documents]
    assert len(names) == len(set(names))
    for document in documents:
        if not document["apiVersion"].startswith("keda.sh/"):  # its schema is not part of Kubernetes
            validator.validate(document, KUBERNETES, strict=True)


@pytest.mark.parametrize("values", [MINIMAL, AGENTS, EVERYTHING], ids=["minimal", "agents", "everything"])
def test_no_pod_has_more_rights_than_it_needs(helm: str, values: dict[str, Any], tmp_path: Path) -> None:
    found = pods(render(helm, values, tmp_path))
    assert {"web", "grpc", "worker", "beat", "migrate"} <= set(found)
    for component, pod in found.items():
        assert pod["securityContext"]["runAsNonRoot"] is True
        assert pod["automountServiceAccountToken"] is False
        [container] = pod["containers"]
        security = container["securityContext"]
        assert security["readOnlyRootFilesystem"] is True
        assert security["allowPrivilegeEscalation"] is False
        assert security["capabilities"] == {"drop": ["ALL"]}
        assert {mount["name"] for mount in container["volumeMounts"]} <= {one["name"] for one in pod["volumes"]}
        assert "memory" in container["resources"]["limits"]
        if component not in ("migrate", "agent"):
            assert {"startupProbe", "livenessProbe"} <= set(container), component
        variables = {variable["name"] for variable in container.get("env", [])}
        assert ("TRIMTAB_OWNER_DATABASE_URL" in variables) == (component == "migrate")


def test_secrets_are_only_references(helm: str, tmp_path: Path) -> None:
    documents = render(helm, EVERYTHING, tmp_path)
    assert "Secret" not in {document["kind"] for document in documents}
    secret = {"DATABASE_URL", "CELERY_BROKER_URL", "TRIMTAB_SECRET_KEY", "TRIMTAB_ADMIN_TOKEN"}
    for pod in pods(documents).values():
        for variable in pod["containers"][0].get("env", []):
            if variable["name"] in secret:
                assert "secretKeyRef" in variable["valueFrom"], variable


def test_workers_scale_by_a_metric_that_the_service_exports(helm: str, tmp_path: Path) -> None:
    documents = render(helm, EVERYTHING, tmp_path)
    [scaled] = [document for document in documents if document["kind"] == "ScaledObject"]
    [trigger] = scaled["spec"]["triggers"]
    assert "trimtab_operations{" in trigger["metadata"]["query"]
    assert '"trimtab_operations"' in (ROOT / "service/api/metrics.py").read_text()
    [worker] = [one for one in documents if one["kind"] == "Deployment" and one["metadata"]["name"] == "tuning-worker"]
    assert scaled["spec"]["scaleTargetRef"]["name"] == "tuning-worker"
    assert "replicas" not in worker["spec"]


def test_the_programs_accept_their_arguments(helm: str, tmp_path: Path) -> None:
    for values in (AGENTS, EVERYTHING):
        for component, pod in pods(render(helm, values, tmp_path)).items():
            arguments = pod["containers"][0]["args"]
            if component == "agent":
                options = agent_parser().parse_args(arguments)
                assert parse_server(options.server) == "tuning-grpc:8471"
                assert options.plaintext
                continue
            command, *options = arguments
            made = get_command(app).commands[command].make_context(command, list(options))  # type: ignore[attr-defined]
            assert set(made.params) >= ({"host"} if component in ("web", "grpc") else set()), component


@pytest.mark.parametrize(
    ("values", "message"),
    [
        ({**MINIMAL, "host": ""}, "host is not set"),
        ({**MINIMAL, "image": {}}, "image.repository is not set"),
        ({**MINIMAL, "keycloak": {}}, "keycloak.issuer is not set, and secrets.adminToken has no name"),
        ({**MINIMAL, "worker": {"autoscaling": {"enabled": True}}}, "worker.autoscaling.prometheus is not set"),
        ({**AGENTS, "agent": {**AGENTS["agent"], "kind": "Pod"}}, 'agent.kind: "Pod" is not a kind of agent'),
        ({**MINIMAL, "agent": {"enabled": True}}, "agent.image.repository is not set"),
    ],
)
def test_a_missing_value_is_named(helm: str, values: dict[str, Any], message: str, tmp_path: Path) -> None:
    done = template(helm, values, tmp_path)
    assert done.returncode != 0
    assert message in done.stderr
