"""Our own kernels are compiled once, and again where what is kept is not whole."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest

from tests.labs.gpu.fake_gpu import FakeGpu
from warpbook_labs.compiler import compiling
from warpbook_labs.compiler.jobs import Compile
from warpbook_labs.compiler.nvrtc import Compiled
from warpbook_labs.course.session import find
from warpbook_labs.engines.kernels.speed import own_source
from warpbook_labs.gpu import tools
from warpbook_labs.gpu.tools import kept_program

SOURCE = 'extern "C" __global__ void nothing(int* x) { x[0] = 1; }'


@pytest.fixture(autouse=True)
def folder(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    monkeypatch.setenv("XDG_DATA_HOME", str(tmp_path))
    return tmp_path / "warpbook" / "programs"


@pytest.fixture
def compiled(monkeypatch: pytest.MonkeyPatch) -> list[tuple[str, str]]:
    """Which programs were compiled, in order."""
    done: list[tuple[str, str]] = []
    real = tools.compile_to_ptx

    def compile_to_ptx(source: str, architecture: str) -> Compiled:
        done.append((source, architecture))
        return real(source, architecture)

    monkeypatch.setattr(tools, "compile_to_ptx", compile_to_ptx)
    return done


def test_a_program_is_compiled_once_for_each_kind_of_gpu(
    compiled: list[tuple[str, str]], folder: Path
) -> None:
    first = kept_program(SOURCE, "sm_90")
    assert first.startswith(b"\x7fELF") and kept_program(SOURCE, "sm_90") == first
    assert kept_program(SOURCE, "sm_80") != first
    assert compiled == [(SOURCE, "sm_90"), (SOURCE, "sm_80")]
    assert not list(folder.glob("*.tmp"))


def test_what_is_cut_off_or_changed_is_compiled_again(
    compiled: list[tuple[str, str]], folder: Path
) -> None:
    whole = kept_program(SOURCE, "sm_90")
    [file] = folder.iterdir()
    content = file.read_bytes()
    for damaged in (b"", content[:40], content[:-1], content[:-1] + b"?"):
        file.write_bytes(damaged)
        assert kept_program(SOURCE, "sm_90") == whole
    assert len(compiled) == 5


def test_a_source_of_a_lab_is_compiled_once(monkeypatch: pytest.MonkeyPatch) -> None:
    lab, gpu = find("vector-add"), FakeGpu(nothing, nothing)
    device: Any = gpu
    jobs: list[Any] = []
    real = compiling.do

    def do(job: Compile) -> Any:
        jobs.append(job)
        return real(job)

    monkeypatch.setattr(compiling, "do", do)
    first = own_source(device, lab, lab.reference)
    assert own_source(device, lab, lab.reference) == first and len(jobs) == 1
    assert own_source(device, lab, lab.starter).cubin != first.cubin
    monkeypatch.setattr(FakeGpu, "architecture", "sm_80")
    assert own_source(device, lab, lab.reference).cubin != first.cubin
    assert len(jobs) == 3


def nothing(gpu: FakeGpu, given: list[Any]) -> None:
    pass


def test_without_a_place_it_is_compiled_each_time(
    compiled: list[tuple[str, str]], folder: Path
) -> None:
    folder.parent.write_text("a file where a folder should be")
    assert kept_program(SOURCE, "sm_90") == kept_program(SOURCE, "sm_90")
    assert len(compiled) == 2
