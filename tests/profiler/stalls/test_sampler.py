"""The sampler lets the GPU go whatever happens, and says what happened."""

import os
import subprocess
import sys
from pathlib import Path

import pytest

from tests.stub_cupti import build

PROGRAM = """\
import struct, sys
from warpbook_profiler.stalls.attribution import stalls_of
from warpbook_profiler.stalls.cubins import loaded_cubins
from warpbook_profiler.stalls.cupti import Cupti, NotSampled
from warpbook_profiler.stalls.sampler import sampling

try:
    with sampling(10, Cupti(sys.argv[1])) as samples:
        if "interrupt" in sys.argv:
            raise KeyboardInterrupt
        if "cubins" in sys.argv:
            machine, sections = 190, (0, 64, 0, 0, 64, 1, 0)
            magic = b"\\x7fELF\\2\\1\\1"
            header = struct.pack("<7s11xH12xQQ6x5H", magic, machine, *sections)
            module = header + bytes(64)
            found = loaded_cubins({7}, Cupti(sys.argv[1]))
            print([len(cubin) for cubin in found.values()])
        if "nested" in sys.argv:
            with sampling(10, Cupti(sys.argv[1])):
                pass
    (kernel,) = stalls_of(samples, {}, str, "").kernels
    print("sampled", kernel.name, kernel.launches, kernel.reasons)
except NotSampled as problem:
    print(problem.state, problem)
except KeyboardInterrupt:
    print("interrupted")
"""


@pytest.fixture(scope="module")
def stub(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return build(tmp_path_factory.mktemp("stub_cupti"))


def run(stub: Path, fault: str = "", *arguments: str) -> tuple[str, list[str]]:
    """Return what the program says, and what happened to the sampler."""
    ran = subprocess.run(
        [sys.executable, "-c", PROGRAM, stub / "lib64" / "libcupti.so.13", *arguments],
        env={**os.environ, "LD_LIBRARY_PATH": str(stub), "STUB_FAULT": fault},
        capture_output=True,
        text=True,
        check=True,
    )
    return ran.stdout.strip(), ran.stderr.split()


def test_samples_without_an_issue_are_within_their_partners(stub: Path) -> None:
    said, done = run(stub)
    assert said == "sampled kernel 1 {'barrier': 5}"
    assert done == ["enabled", "disabled", "gone"]


def test_cupti_stays_where_another_tool_uses_it(stub: Path) -> None:
    said, done = run(stub, "Subscribe=39")
    assert said.startswith("sampled")
    assert done == ["enabled", "disabled"]


@pytest.mark.parametrize(
    ("fault", "state", "says"),
    [
        ("PCSamplingEnable=35", "denied", "RmProfilingAdminOnly"),
        ("PCSamplingEnable=26", "held", "Another tool holds the sampler"),
        ("PCSamplingEnable=27", "unsupported", "not available on this device"),
        ("PCSamplingEnable=999", "failed", "A_RESULT"),
        ("PCSamplingSetConfigurationAttribute=8", "failed", "no memory"),
        ("PCSamplingGetData=8", "failed", "no memory"),
        ("CtxSynchronize=700", "failed", "CUDA_ERROR_ILLEGAL_ADDRESS"),
        ("major=6", "unsupported", "older than Volta"),
    ],
)
def test_why_there_are_no_samples_is_said(
    stub: Path, fault: str, state: str, says: str
) -> None:
    said, done = run(stub, fault)
    assert said.split()[0] == state
    assert says in said
    assert done.count("enabled") == done.count("disabled")


def test_a_cell_that_is_interrupted_leaves_the_sampler_off(stub: Path) -> None:
    said, done = run(stub, "", "interrupt")
    assert said == "interrupted"
    assert done == ["enabled", "disabled", "gone"]


def test_an_interrupt_while_it_is_turned_on_leaves_the_sampler_off(stub: Path) -> None:
    said, done = run(stub, "Interrupted=1")
    assert said == "interrupted"
    assert done == ["enabled", "disabled", "gone"]


@pytest.mark.parametrize(("fault", "lengths"), [("", [128]), ("GetCubinCrc=1", [])])
def test_what_looks_like_a_cubin_in_memory_is_no_failure(
    stub: Path, fault: str, lengths: list[int]
) -> None:
    said, _ = run(stub, fault, "cubins")
    assert said.splitlines()[0] == str(lengths)
    assert "sampled kernel" in said


def test_a_process_has_one_sampler(stub: Path) -> None:
    said, done = run(stub, "", "nested")
    assert said.startswith("held")
    assert done == ["enabled", "disabled", "gone"]


def test_a_machine_without_a_driver_has_no_samples(stub: Path) -> None:
    (stub / "libcuda.so.1").rename(stub / "libcuda.so.1.gone")
    try:
        said, done = run(stub)
    finally:
        (stub / "libcuda.so.1.gone").rename(stub / "libcuda.so.1")
    assert said.startswith("unsupported Stall samples are not available on")
    assert not done
