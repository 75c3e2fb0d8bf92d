"""`warpbook mcp` as an editor starts it: with a server, and without."""

import asyncio
import os
import shutil
import sys
from pathlib import Path

import pytest
from mcp import Client, StdioServerParameters

from tests.extension.mcp.conftest import Assistant
from tests.extension.server.test_difference import TRACES
from tests.extension.server.test_holders import program
from tests.programs import ROOT
from warpbook.cli.main import main


def child(*arguments: str, cwd: Path, **variables: str) -> StdioServerParameters:
    folders = [str(ROOT / name) for name in ("extension", "labs", "monitors")]
    env = {"PYTHONPATH": os.pathsep.join(folders), "HOME": str(cwd), **variables}
    command = ["-m", "warpbook.cli.main", "mcp", *arguments]
    return StdioServerParameters(
        command=sys.executable, args=command, cwd=cwd, env={**os.environ, **env}
    )


async def test_without_a_server_it_reads_this_machine(stub_nvml, tmp_path) -> None:
    shutil.copy(TRACES / "tiny_kernels.json.gz", tmp_path / "tiny.json.gz")
    (tmp_path / "out.json").symlink_to("/etc/hostname")
    stub_nvml.set(0, memory_used_bytes=3 * 2**30)
    async with Client(child(cwd=tmp_path, **stub_nvml.env)) as client:
        it = Assistant(client)
        said = await it.ask("gpus_now")
        (gpu,) = said["rows"]
        assert gpu["figures"]["memory_used_bytes"] == 3 * 2**30
        assert said["from"].startswith("this machine") and not said["is_replay"]
        report = await it.ask("report", trace="tiny.json.gz")
        assert report["verdict"]["kind"] == "launch-bound"
        again = await it.ask("kernels", report=report["id"])
        assert again["rows"]
        for path in ("/etc/hostname", "../x.json", "out.json", "x\0"):
            assert "no such file" in await it.refused("report", trace=path)
        assert "--server" in await it.refused("cells")


async def test_in_a_hubs_terminal_other_users_have_no_names(
    stub_nvml, tmp_path
) -> None:
    """A hub may run everybody's servers as one account."""
    theirs = {"JUPYTERHUB_USER": "bob", "JPY_SESSION_NAME": "/home/bob/secret.ipynb"}
    started = child(cwd=tmp_path, JUPYTERHUB_USER="alice", **stub_nvml.env)
    with program(env={**os.environ, **theirs}) as pid:
        stub_nvml.hold(0, (pid, 2**30))
        async with Client(started) as client:
            said = await Assistant(client).ask("gpus_now")
    (gpu,) = said["rows"]
    held = gpu["memory_held_by"]["holders"]
    assert held == [{"who": "another account", "used_bytes": 2**30}]
    assert "secret" not in str(said) and "bob" not in str(said)


async def test_without_a_gpu_it_says_that_it_plays_a_recording(tmp_path) -> None:
    async with Client(child(cwd=tmp_path)) as client:
        said = await Assistant(client).ask("gpus_now")
    assert said["is_replay"] is True and "REPLAY" in said["replay"]["means"]


async def test_with_a_server_its_tools_are_given(
    jp_serverapp, http_server, jp_base_url, jp_http_port, ingest, tmp_path
) -> None:
    from tests.extension.server.test_ingest import report

    await ingest("/v1/reports", report("r-1"))
    url = f"http://127.0.0.1:{jp_http_port}{jp_base_url}"
    token = jp_serverapp.identity_provider.token
    started = child("--server", url, cwd=tmp_path, JUPYTER_TOKEN=token)
    async with Client(started) as client:
        it = Assistant(client)
        assert [tool.name for tool in (await client.list_tools()).tools][
            0
        ] == "gpus_now"
        (cell,) = (await it.ask("cells"))["rows"]
        assert cell["id"] == "«r-1»"
        assert "No report of this id" in await it.refused("report", report="r-2")
    refused = child("--server", url, cwd=tmp_path, JUPYTER_TOKEN="x")
    process = await asyncio.create_subprocess_exec(
        refused.command,
        *refused.args,
        cwd=tmp_path,
        env=refused.env,
        stdin=asyncio.subprocess.DEVNULL,
        stderr=asyncio.subprocess.PIPE,
    )
    _, said_by_it = await process.communicate()
    assert process.returncode == 1
    assert b"does not accept the token" in said_by_it


@pytest.mark.parametrize(
    ("arguments", "words"),
    [
        (("--server", "http://127.0.0.1:1/?token=s"), "Everybody here sees"),
        (("--server", "ftp://x"), "begins with http"),
        (
            ("--server", "http://127.0.0.1:1"),
            "token of http://127.0.0.1:1/ is not known",
        ),
        (("--folder", "/nowhere"), "is no folder"),
    ],
)
def test_a_wrong_command_line_is_told_in_words(
    arguments, words, capsys, monkeypatch, tmp_path
) -> None:
    monkeypatch.delenv("JUPYTER_TOKEN", raising=False)
    monkeypatch.setenv("JUPYTER_RUNTIME_DIR", str(tmp_path))
    assert main(["mcp", *arguments]) == 1
    assert words in capsys.readouterr().err
