"""What `warpbook hub --engine ray` refuses, before it begins anything."""

from __future__ import annotations

import sys
from pathlib import Path

import pytest

from warpbook.cli.main import main

ADDRESS = ("--ray-address", "10.0.0.1:6379")


@pytest.fixture
def token_file(tmp_path: Path) -> Path:
    file = tmp_path / "ray_token"
    file.write_text("0" * 32)
    file.chmod(0o600)
    return file


def refused(
    folder: Path, capsys: pytest.CaptureFixture[str], *options: str | Path
) -> str:
    assert main(["hub", "--folder", str(folder), *map(str, options)]) == 1
    assert not folder.exists()
    return capsys.readouterr().err


@pytest.mark.parametrize(
    ("options", "words"),
    [
        (ADDRESS, "with --engine ray"),
        (("--engine", "ray", *ADDRESS), "--ray-token-file"),
    ],
)
def test_what_is_missing_is_said(
    options: tuple[str, ...],
    words: str,
    tmp_path: Path,
    capsys: pytest.CaptureFixture[str],
) -> None:
    assert words in refused(tmp_path / "hub", capsys, *options)


@pytest.mark.parametrize(
    ("options", "words"),
    [
        ((*ADDRESS, "--cpu-slots", "2"), "each node has its own"),
        ((*ADDRESS, "--no-gpu"), "each node has its own"),
        (("--ray-address", "10.0.0.1"), "is HOST:PORT"),
        (("--ray-address", "10.0.0.1:99999"), "is HOST:PORT"),
    ],
)
def test_what_a_cluster_cant_have_is_refused(
    options: tuple[str, ...],
    words: str,
    token_file: Path,
    tmp_path: Path,
    capsys: pytest.CaptureFixture[str],
) -> None:
    on_ray = ("--engine", "ray", "--ray-token-file", token_file, *options)
    assert words in refused(tmp_path / "hub", capsys, *on_ray)


def test_a_token_that_others_read_or_that_is_none_is_refused(
    token_file: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    on_ray = ("--engine", "ray", *ADDRESS, "--ray-token-file", token_file)
    token_file.chmod(0o644)
    assert "chmod 600" in refused(tmp_path / "hub", capsys, *on_ray)
    token_file.chmod(0o600)
    token_file.write_text("short")
    assert "32 characters" in refused(tmp_path / "hub", capsys, *on_ray)


def test_without_ray_it_says_what_to_install(
    token_file: Path,
    tmp_path: Path,
    capsys: pytest.CaptureFixture[str],
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    # as Python notes a module that is not there
    monkeypatch.setitem(sys.modules, "ray", None)
    on_ray = ("--engine", "ray", *ADDRESS, "--ray-token-file", token_file)
    words = refused(tmp_path / "hub", capsys, *on_ray)
    assert "pip install 'warpbook-hub[ray]'" in words
