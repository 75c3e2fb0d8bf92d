"""The files by which a JupyterHub that is there already has a course and GPUs.

They are templates with a site's settings in them: as Python's literals, or as JSON,
which YAML takes.
"""

from __future__ import annotations

import json
import re
import sys
from collections.abc import Mapping
from pathlib import Path
from string import Template
from typing import Any, Literal
from urllib.parse import urlsplit

from msgspec import Struct

from warpbook_hub.scopes import CUSTOM_SCOPES, LOGIN, ROLES, SERVICE
from warpbook_monitors._version import __version__

Spawner = Literal["kube", "systemd", "slurm"]
CONFIG = "warpbook_config.py"
JOB = "warpbook_job.sh"
MANIFESTS = "course.yaml"
VALUES = "values.yaml"
PORT = 8788
WHOLE = "whole"
#: a profile of MIG
MIG = r"[1-9]g\.[1-9]\d{0,2}gb"
_TEMPLATES = Path(__file__).with_name("templates")
_HUB_OF_CHART = "http://hub:8081"
_LOADED = f'In jupyterhub_config.py: load_subconfig("/etc/jupyterhub/{CONFIG}")'
_TOKEN = """
# the Secret's, which values.yaml puts there
import os

service["api_token"] = os.environ["WARPBOOK_SERVICE_TOKEN"]"""
_MOST_LINE = 44


class Site(Struct, frozen=True):
    """What a site has decided."""

    spawner: Spawner
    #: where people and notebooks reach the hub, with a slash at its end
    hub_url: str
    course: str
    title: str
    instructors: tuple[str, ...]
    operators: tuple[str, ...]
    #: of each server
    cpus: int
    memory_gib: int
    #: Kubernetes and Slurm: `whole`, a profile of MIG, a type of Slurm's; systemd:
    #: UUIDs with their nodes
    gpus: Mapping[str, tuple[str, ...]]
    #: of the course's database, where the hub starts the service
    folder: str = ""
    #: the account of the service, where the hub is root
    service_user: str = ""
    #: of Kubernetes
    image: str = ""
    namespace: str = ""
    #: of Slurm
    partition: str = ""
    time_limit: str = ""


def site_files(site: Site) -> dict[str, str]:
    if site.spawner == "kube":
        return _of_kubernetes(site)
    files = {CONFIG: _course(site, _managed(site)) + _servers(site)}
    if site.spawner == "slurm":
        script = (_TEMPLATES / "job.sh").read_text()
        files[JOB] = script.replace("{{bin_folder}}", str(Path(sys.executable).parent))
    return files


def literal(value: Any, indent: int = 0) -> str:
    """Write texts, numbers, lists and dicts as Python that a person can change."""
    if isinstance(value, dict):
        begin, parts, end = "{", [(f"{literal(k)}: ", value[k]) for k in value], "}"
    elif isinstance(value, list):
        begin, parts, end = "[", [("", part) for part in value], "]"
    else:
        is_text = isinstance(value, str)
        return _json(value) if is_text else repr(value)
    line = begin + ", ".join(key + literal(part) for key, part in parts) + end
    if "\n" not in line and indent + len(line) < _MOST_LINE:
        return line
    inner = indent + 4
    lines = [f"{' ' * inner}{key}{literal(part, inner)},\n" for key, part in parts]
    return f"{begin}\n{''.join(lines)}{' ' * indent}{end}"


def _of_kubernetes(site: Site) -> dict[str, str]:
    base_url = urlsplit(site.hub_url).path
    prefix = f"{base_url}services/{SERVICE}/"
    values = {
        "namespace": site.namespace,
        "image": site.image,
        # Kubernetes puts variables in place of $(NAME)
        "command": ["python", *(word.replace("$", "$$") for word in _begin(site))],
        "port": PORT,
        "prefix": prefix,
        "health": f"{prefix}health",
        "base_url": base_url,
        "api_url": f"{_HUB_OF_CHART}{base_url}hub/api",
    }
    as_json = {name: _json(value) for name, value in values.items()}
    as_json["version"] = __version__
    service = {"url": f"http://warpbook-course:{PORT}"}
    return {
        CONFIG: _course(site, service) + _servers(site),
        MANIFESTS: _filled("course.yaml", as_json | {"port": str(PORT)}),
        VALUES: _filled("values.yaml", {**as_json, "namespace": site.namespace}),
    }


def _managed(site: Site) -> dict[str, Any]:
    """Describe a service that the hub starts, and starts anew."""
    service: dict[str, Any] = {
        "url": f"http://127.0.0.1:{PORT}",
        "command": [sys.executable, *_begin(site)],
        "environment": {"WARPBOOK_HUB_DATA": site.folder},
        "cwd": "/",
    }
    return service | ({"user": site.service_user} if site.service_user else {})


def _begin(site: Site) -> list[str]:
    command = ["-m", "warpbook_hub.running.hosted"]
    command += ["--course", site.course, "--title", site.title]
    for name in site.instructors:
        command += ["--instructor", name]
    for name in site.operators:
        command += ["--operator", name]
    return command


def _course(site: Site, service: dict[str, Any]) -> str:
    is_kube = site.spawner == "kube"
    return _filled(
        "course.py.txt",
        {
            "spawner": site.spawner,
            "version": __version__,
            "how": f"{VALUES} says how to install it." if is_kube else _LOADED,
            "where": f"{MANIFESTS} has its pod."
            if is_kube
            else "The hub starts it, and starts it anew.",
            "service": literal({"name": SERVICE, **service, **LOGIN}),
            "token": _TOKEN if is_kube else "",
            "custom_scopes": literal(CUSTOM_SCOPES),
            "roles": literal(ROLES),
            # the chart sets it for KubeSpawner, beside which Spawner's would not count
            "environment_of": "KubeSpawner" if is_kube else "Spawner",
            "pages_url": literal(f"{site.hub_url}services/{SERVICE}/"),
        },
    )


def _servers(site: Site) -> str:
    return _filled(
        f"{site.spawner}.py.txt",
        {
            "gpus": literal(_gpus(site)),
            "cpus": str(site.cpus),
            "memory": literal(f"{site.memory_gib}G"),
            "namespace": literal(site.namespace),
            "image": literal(site.image),
            "partition": literal(site.partition),
            "time_limit": literal(site.time_limit),
            "job_file": JOB,
        },
    )


def _gpus(site: Site) -> dict[str, Any]:
    """Give what is offered, and what the spawner asks for it."""
    if site.spawner == "systemd":
        return {uuid: list(nodes) for uuid, nodes in site.gpus.items()}
    whole, part = {
        "kube": ("nvidia.com/gpu", "nvidia.com/mig-{}"),
        "slurm": ("gpu:1", "gpu:{}:1"),
    }[site.spawner]
    return {
        _label(name): whole if name == WHOLE else part.format(name)
        for name in site.gpus
    }


def _label(name: str) -> str:
    if name == WHOLE:
        return "One GPU"
    return f"A MIG slice, {name}" if re.fullmatch(MIG, name) else f"One GPU, {name}"


def _filled(name: str, values: Mapping[str, str]) -> str:
    return Template((_TEMPLATES / name).read_text()).substitute(values)


def _json(value: Any) -> str:
    # an escaped pair of surrogates is one character in JSON alone
    return json.dumps(value, ensure_ascii=False)
