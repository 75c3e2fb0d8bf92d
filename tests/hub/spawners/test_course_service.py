"""A JupyterHub that is there already serves a course, by the files as written."""

from __future__ import annotations

import contextlib
import sys
from collections.abc import Iterator
from pathlib import Path

import yaml

from tests.hub.service.class_hub import ROSTER, Visitor
from tests.hub.spawners.site import (
    KUBE,
    SLURM,
    SiteHub,
    draw_token,
    environment_of,
    site_hub,
)
from tests.programs import answers, environment, running, wait_for
from warpbook_hub.spawners.site_files import MANIFESTS, PORT


def check_course(hub: SiteHub) -> None:
    """Its instructor runs the course that the files name, and nobody else does."""
    wait_for("the service", lambda: answers(f"{hub.service_url}health"))
    grace, ada = (Visitor(hub, name).log_in() for name in ("grace", "ada"))
    (course,) = grace.get("courses").json()
    assert (course["id"], course["role"]) == ("gpu101", "instructor")
    assert grace.done("courses/gpu101/roster", {"csv": ROSTER})["added"]
    assert grace.done("hub/graders", {"name": "node-1"})["token"]
    assert ada.post("hub/graders", {"name": "mine"}).status_code == 403


def test_the_hub_starts_the_service(tmp_path: Path) -> None:
    options = (*SLURM, "--gpu", "whole", "--folder", str(tmp_path / "course"))
    with site_hub(tmp_path, options) as hub:
        check_course(hub)
    assert (tmp_path / "course" / "hub.db").exists()


@contextlib.contextmanager
def pod(hub: SiteHub, token: str) -> Iterator[None]:
    """Run the container's own command, with this machine's addresses."""
    manifests = list(yaml.safe_load_all((hub.folder / MANIFESTS).read_text()))
    (deployment,) = [one for one in manifests if one["kind"] == "Deployment"]
    (container,) = deployment["spec"]["template"]["spec"]["containers"]
    env = environment_of(container, token) | {
        "WARPBOOK_HUB_DATA": str(hub.folder / "course"),
        "JUPYTERHUB_API_URL": hub.api_url,
        "JUPYTERHUB_SERVICE_URL": f"http://127.0.0.1:{hub.service_port}",
    }
    assert container["ports"][0]["containerPort"] == PORT
    command = [sys.executable, *container["command"][1:]]
    given = environment(PYTHONPATH=":".join(filter(None, sys.path)), **env)
    with running(command, given, hub.folder / "service.log"):
        probe = container["readinessProbe"]["httpGet"]["path"]
        address = f"http://127.0.0.1:{hub.service_port}{probe}"
        wait_for("the pod", lambda: answers(address))
        yield


def test_the_pod_serves_what_the_hub_asks_for(tmp_path: Path) -> None:
    token = draw_token()
    with site_hub(
        tmp_path,
        (*KUBE, "--gpu", "whole"),
        'c.JupyterHub.spawner_class = "simple"\n',
        lambda hub: pod(hub, token),
        WARPBOOK_SERVICE_TOKEN=token,
    ) as hub:
        check_course(hub)
