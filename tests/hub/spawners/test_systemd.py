"""The units that a real SystemdSpawner asks for; systemd itself is played.

systemd-run needs a machine whose first process is systemd: its command line is what is
looked at.
"""

from __future__ import annotations

import os
from collections.abc import Iterator
from pathlib import Path

import pytest
from systemdspawner import systemd

from tests.hub.spawners.servers import People, calls, play, run
from tests.hub.spawners.site import config_of, written
from warpbook_hub.spawners.choice import NotGiven

WHOLE = "GPU-01234567-89ab-cdef-0123-456789abcdef"
SLICE = "MIG-76543210-89ab-cdef-0123-456789abcdef"
CAPS = ("/dev/nvidia-caps/nvidia-cap21", "/dev/nvidia-caps/nvidia-cap22")
OPTIONS = ("--spawner", "systemd", "--gpu", f"{WHOLE}=/dev/nvidia0")
SHARED = {"/dev/nvidiactl rw", "/dev/nvidia-uvm rw", "/dev/nvidia-uvm-tools rw"}


@pytest.fixture
def people(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[People]:
    play(tmp_path, "systemd-run", "touch $(dirname $0)/is-active")
    # what is asked for, such as `is-active`, is a file once that is so
    play(tmp_path, "systemctl", "test -e $(dirname $0)/$1")
    monkeypatch.setenv("PATH", f"{tmp_path}:{os.environ['PATH']}")
    # the folder of units' environments, which only root writes
    monkeypatch.setattr(systemd, "RUN_ROOT", str(tmp_path))
    monkeypatch.setattr(systemd, "get_systemd_version", lambda: 252)
    slice_nodes = ",".join(["/dev/nvidia1", *CAPS])
    config = config_of(
        written(tmp_path / "site", *OPTIONS, "--gpu", f"{SLICE}={slice_nodes}")
    )
    # what the site keeps for all of its units
    config.SystemdSpawner.unit_extra_properties = {"Nice": "5"}
    people = People(config)
    yield people
    people.close()


def unit(people: People, folder: Path, gpu: str) -> tuple[dict[str, list[str]], str]:
    """Start a server; give the properties of its unit and its environment file."""
    server = people.server({"gpu": gpu} if gpu else {})
    server.cmd = ["/usr/bin/env"]
    run(server.start())
    (words,) = calls(folder / "systemd-run.calls")
    properties: dict[str, list[str]] = {}
    for word in words:
        if word.startswith("--property="):
            name, value = word.removeprefix("--property=").split("=", 1)
            properties.setdefault(name, []).append(value)
    (file,) = properties["EnvironmentFile"]
    return properties, Path(file).read_text()


@pytest.mark.parametrize(
    ("gpu", "nodes"), [(WHOLE, {"/dev/nvidia0"}), (SLICE, {"/dev/nvidia1", *CAPS})]
)
def test_a_unit_opens_its_gpu_and_no_other(
    people: People, tmp_path: Path, gpu: str, nodes: set[str]
) -> None:
    properties, environment = unit(people, tmp_path, gpu)
    assert properties["DevicePolicy"] == ["closed"]
    assert set(properties["DeviceAllow"]) == {f"{node} rw" for node in nodes} | SHARED
    assert f"CUDA_VISIBLE_DEVICES={gpu}\n" in environment
    assert properties["Nice"] == ["5"]
    assert properties["MemoryMax"] == [str(8 * 2**30)]


def test_a_unit_without_a_gpu_opens_no_device(people: People, tmp_path: Path) -> None:
    properties, environment = unit(people, tmp_path, "")
    assert properties["DevicePolicy"] == ["closed"]
    assert "DeviceAllow" not in properties
    assert "CUDA_VISIBLE_DEVICES=''\n" in environment


def test_one_server_has_a_gpu_at_a_time(people: People, tmp_path: Path) -> None:
    people.server({"gpu": WHOLE}, "ada")
    visitor = people.server({})
    form = visitor.options_form(visitor)
    assert "disabled" in form and "ada has it" in form
    with pytest.raises(NotGiven, match="ada has this GPU"):
        run(people.server({"gpu": WHOLE}).start())
    assert not calls(tmp_path / "systemd-run.calls")
    unit(people, tmp_path, SLICE)


@pytest.mark.parametrize("gpu", ["/dev/sda", [WHOLE], {"a": 1}, 7])
def test_what_is_not_offered_starts_nothing(
    people: People, tmp_path: Path, gpu: object
) -> None:
    with pytest.raises(NotGiven, match="no such GPU"):
        run(people.server({"gpu": gpu}).start())
    assert not calls(tmp_path / "systemd-run.calls")
    # nor does it trouble anybody else
    people.server({"gpu": gpu}, "mallory")
    unit(people, tmp_path, WHOLE)
