"""What whoever starts a class reads before anybody logs in."""

from __future__ import annotations

import subprocess
import sys
from importlib.machinery import ModuleSpec
from pathlib import Path

import msgspec
import pytest

from tests.hub.service.test_isolation import planned
from tests.programs import free_port
from warpbook_hub.cli import introduction as hub_introduction
from warpbook_hub.lti.platform import LtiPlatform

PLATFORM = LtiPlatform(
    issuer="https://lms.example.org",
    client_id="a1b2c3",
    deployments=("1",),
    authorize_url="https://lms.example.org/auth",
    token_url="https://lms.example.org/token",
    jwks_url="https://lms.example.org/keys",
)


@pytest.mark.parametrize(
    ("installed", "slots", "not_graded"),
    [
        ({"torch", "triton"}, 1, []),
        ({"torch"}, 1, ["labs in Triton"]),
        (set(), 1, ["labs in PyTorch", "labs in Triton"]),
        # graders of other machines have their own
        (set(), 0, []),
    ],
)
def test_labs_that_this_machine_cannot_grade_are_named(
    installed: set[str],
    slots: int,
    not_graded: list[str],
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
    capsys: pytest.CaptureFixture[str],
) -> None:
    monkeypatch.setattr(
        hub_introduction,
        "find_spec",
        lambda name: ModuleSpec(name, None) if name in installed else None,
    )
    plan = msgspec.structs.replace(planned(tmp_path), cpu_slots=slots, use_gpu=False)
    hub_introduction.introduce(plan)
    introduction = capsys.readouterr().out
    named = [
        name for name in ("labs in PyTorch", "labs in Triton") if name in introduction
    ]
    assert named == not_graded


@pytest.mark.parametrize("certificate", ["", "cert.pem"])
def test_launches_of_a_platform_without_https_are_warned_of(
    certificate: str, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    plan = planned(tmp_path)
    plan = msgspec.structs.replace(plan, platform=PLATFORM, ssl_cert=certificate)
    hub_introduction.introduce(plan)
    assert ("BY HTTP" in capsys.readouterr().out) == (not certificate)


def test_an_open_mcp_server_of_this_machine_is_named(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    port = free_port()
    program = tmp_path / "an_mcp_server.py"
    program.write_text(
        "import socket, time\n"
        f"with socket.create_server(('127.0.0.1', {port})):\n"
        "    print('listens', flush=True)\n"
        "    time.sleep(600)\n"
    )
    command = [sys.executable, str(program)]
    with subprocess.Popen(command, stdout=subprocess.PIPE) as server:
        try:
            assert server.stdout is not None
            assert server.stdout.readline() == b"listens\n"
            hub_introduction.introduce(planned(tmp_path))
        finally:
            server.kill()
    said = capsys.readouterr().out
    assert "NEIGHBOURS" in said
    assert f"process {server.pid}: an_mcp_server.py" in said and f"{port} (" in said
