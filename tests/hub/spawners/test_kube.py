"""Pods of a real KubeSpawner, and the course's manifests, as Kubernetes takes them."""

from __future__ import annotations

import json
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
import yaml
from kubernetes_asyncio.client import ApiClient
from kubernetes_asyncio.config import kube_config
from traitlets.config import Config

from tests.hub.spawners.kubernetes_types import check
from tests.hub.spawners.servers import People, run
from tests.hub.spawners.site import HUB_URL, KUBE, config_of, written
from warpbook_hub.spawners.site_files import MANIFESTS, VALUES

GPU = "nvidia.com/gpu"
#: nothing answers there, and nothing is asked
_CLUSTER = """
apiVersion: v1
kind: Config
current-context: none
contexts: [{name: none, context: {cluster: none, user: none}}]
clusters: [{name: none, cluster: {server: "http://127.0.0.1:9"}}]
users: [{name: none, user: {}}]
"""


@pytest.fixture
def folder(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    cluster = tmp_path / "kubeconfig"
    cluster.write_text(_CLUSTER)
    # read from the environment only as the client is imported
    monkeypatch.setattr(kube_config, "KUBE_CONFIG_DEFAULT_LOCATION", str(cluster))
    monkeypatch.setenv("WARPBOOK_SERVICE_TOKEN", "of-the-secret")
    return written(tmp_path / "site", *KUBE, "--gpu", "whole", "--gpu", "1g.10gb")


@pytest.fixture
def config(folder: Path) -> Config:
    return config_of(folder)


@pytest.fixture
def people(config: Config) -> Iterator[People]:
    people = People(config)
    yield people
    people.close()


def pod_of(people: People, options: dict[str, Any]) -> dict[str, Any]:
    async def made() -> dict[str, Any]:
        spawner = people.server(options)
        await spawner.load_user_options()
        pod = await spawner.get_pod_manifest()
        async with ApiClient() as client:
            return json.loads(json.dumps(client.sanitize_for_serialization(pod)))

    pod: dict[str, Any] = run(made())
    check("V1Pod", pod)
    return pod


def container_of(pod: dict[str, Any]) -> tuple[dict[str, Any], dict[str, str]]:
    (container,) = pod["spec"]["containers"]
    return container, {one["name"]: one.get("value", "") for one in container["env"]}


@pytest.mark.parametrize("options", [{}, {"profile": "no-gpu"}])
def test_a_pod_without_a_gpu_sees_none(people: People, options: dict[str, str]) -> None:
    pod = pod_of(people, options)
    container, env = container_of(pod)
    assert not [name for name in container["resources"]["limits"] if "nvidia" in name]
    # NVIDIA's runtime gives all to an image that says nothing, and most say `all`
    assert env["NVIDIA_VISIBLE_DEVICES"] == "void"
    assert env["CUDA_VISIBLE_DEVICES"] == ""
    assert "tolerations" not in pod["spec"]


@pytest.mark.parametrize(
    ("profile", "resource"), [("gpu", GPU), ("mig-1g.10gb", "nvidia.com/mig-1g.10gb")]
)
def test_a_pod_has_what_was_chosen(people: People, profile: str, resource: str) -> None:
    pod = pod_of(people, {"profile": profile})
    container, env = container_of(pod)
    limits = container["resources"]["limits"]
    assert {k: v for k, v in limits.items() if "nvidia" in k} == {resource: "1"}
    assert "NVIDIA_VISIBLE_DEVICES" not in env and "CUDA_VISIBLE_DEVICES" not in env
    (toleration,) = pod["spec"]["tolerations"]
    assert (toleration["key"], toleration["effect"]) == (GPU, "NoSchedule")
    assert container["image"] == "r.example/gpu:1"
    assert env["WARPBOOK_HUB_URL"] == f"{HUB_URL}services/warpbook/"


def test_a_program_can_choose_only_what_is_offered(people: People) -> None:
    with pytest.raises(ValueError, match="no-gpu"):
        pod_of(people, {"profile": "gpus-8"})
    pod = pod_of(people, {"profile": "gpu", "extra_resource_limits": {GPU: "8"}})
    container, _ = container_of(pod)
    assert container["resources"]["limits"][GPU] == "1"


def test_tolerations_of_the_site_stay(config: Config) -> None:
    own = {"key": "hub.jupyter.org/dedicated", "operator": "Exists"}
    config.KubeSpawner.tolerations = [own]
    people = People(config)
    tolerations = pod_of(people, {"profile": "gpu"})["spec"]["tolerations"]
    people.close()
    assert tolerations[0] == own and len(tolerations) == 2


def test_the_courses_manifests_are_of_kubernetes(folder: Path) -> None:
    manifests = list(yaml.safe_load_all((folder / MANIFESTS).read_text()))
    for manifest in manifests:
        check(f"V1{manifest['kind']}", manifest, manifest["kind"])
        assert manifest["metadata"]["namespace"] == "jhub"
    claim, deployment, service = manifests
    template = deployment["spec"]["template"]
    (container,) = template["spec"]["containers"]
    (volume,) = template["spec"]["volumes"]
    assert volume["persistentVolumeClaim"]["claimName"] == claim["metadata"]["name"]
    labels = template["metadata"]["labels"].items()
    assert labels >= deployment["spec"]["selector"]["matchLabels"].items()
    assert labels >= service["spec"]["selector"].items()
    (port,) = service["spec"]["ports"]
    assert port["targetPort"] == container["ports"][0]["name"]


def test_hub_and_pod_have_one_token(folder: Path, config: Config) -> None:
    values = yaml.safe_load((folder / VALUES).read_text())
    (name,) = values["hub"]["extraEnv"]
    check("V1EnvVar", {"name": name, **values["hub"]["extraEnv"][name]})
    (service,) = config.JupyterHub.services.get_value([])
    assert service["api_token"] == "of-the-secret"
    manifests = list(yaml.safe_load_all((folder / MANIFESTS).read_text()))
    (container,) = manifests[1]["spec"]["template"]["spec"]["containers"]
    (of_pod,) = [one for one in container["env"] if "valueFrom" in one]
    assert of_pod["name"] == "JUPYTERHUB_API_TOKEN"
    assert of_pod["valueFrom"] == values["hub"]["extraEnv"][name]["valueFrom"]


def test_the_check_finds_what_kubernetes_refuses() -> None:
    pod = {"spec": {"containers": [{"name": "one"}]}}
    check("V1Pod", pod)
    for broken in (
        {"spec": {"containers": [{"name": "one", "imagee": "x"}]}},
        {"spec": {"containers": [{"name": "one", "ports": [{"containerPort": "80"}]}]}},
    ):
        with pytest.raises(AssertionError):
            check("V1Pod", broken)
    with pytest.raises(ValueError, match="name"):
        check("V1Pod", {"spec": {"containers": [{"image": "x"}]}})
