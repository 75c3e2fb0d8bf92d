"""Samples that an H200 gave, and the real cubins' line tables."""

import base64
import gzip
import json
import random
import struct
from collections import Counter
from functools import cache
from pathlib import Path

import pytest

from tests.gpu.stalls.planted import SOURCES, Planted, planted
from warpbook_profiler.model.stalls import Stalls
from warpbook_profiler.stalls.attribution import Source, stalls_of
from warpbook_profiler.stalls.line_table import BadCubin, LineTable
from warpbook_profiler.stalls.sampler import KernelSamples, Samples, period_for

RECORDED = Path(__file__).parents[2] / "data" / "stalls" / "h200.json.gz"
#: no samples are of these, in which `tl.max` and `tl.sum` of `standard.py` are inlined
ROW_SOFTMAX, ROW_SOFTMAX_OF_TRITON_3_6 = 0, 1


@cache
def cubins() -> dict[int, bytes]:
    recorded = json.loads(gzip.decompress(RECORDED.read_bytes()))
    return {
        int(number): base64.b64decode(cubin)
        for number, cubin in recorded["cubins"].items()
    }


def samples() -> Samples:
    recorded = json.loads(gzip.decompress(RECORDED.read_bytes()))
    told = Samples(recorded["device"], recorded["period_cycles"])
    for kernel in recorded["kernels"]:
        told.kernels[kernel["cubin"], kernel["function"]] = KernelSamples(
            {(0, at) for at in range(kernel["launches"])},
            {int(at): Counter(of) for at, of in kernel["offsets"].items()},
        )
    return told


def source_of(path: str, function: str) -> Source:
    if path.endswith(".py"):
        return Source(Path(path).name, "", "triton", "site-packages" in path)
    return Source("kernels.cu", SOURCES["cuda"].read_text(), "cuda")


@cache
def told() -> Stalls:
    return stalls_of(samples(), cubins(), source_of, "")


@pytest.mark.parametrize("fault", planted(), ids=lambda fault: fault.name)
def test_a_fault_is_on_its_line_with_its_reason(fault: Planted) -> None:
    (kernel,) = (one for one in told().kernels if one.name == fault.name)
    assert kernel.language == fault.language
    first = kernel.lines[0]
    assert (told().files[first.file].name, first.line) == (
        SOURCES[fault.language].name,
        fault.line,
    )
    waits = [one for one in first.reasons if one not in ("selected", "not_selected")]
    assert fault.reasons & set(waits[:2])


def test_no_sample_is_lost_or_counted_twice() -> None:
    recorded = samples()
    for kernel in told().kernels:
        (found,) = (
            of for (_, name), of in recorded.kernels.items() if name == kernel.name
        )
        seen = sum(
            samples
            for counted in found.offsets.values()
            for reason, samples in counted.items()
            if not reason.endswith("not_issued")
        )
        lines = sum(line.samples for line in kernel.lines)
        assert kernel.samples == seen == lines + kernel.unattributed


@pytest.mark.parametrize("cubin", [ROW_SOFTMAX, ROW_SOFTMAX_OF_TRITON_3_6])
def test_lines_of_a_library_are_given_to_those_that_call_them(cubin: int) -> None:
    every = samples()
    offsets = {at: Counter(wait=1) for at in range(0, 0x1C00, 16)}
    every.kernels = {(cubin, "row_softmax"): KernelSamples({(0, 1)}, offsets)}
    table = LineTable(cubins()[cubin])
    innermost = {table.calls("row_softmax", at)[0].path for at in offsets}
    assert any("site-packages" in path for path in innermost)
    ptx: str = json.loads(gzip.decompress(RECORDED.read_bytes()))["ptx"]
    # what is not the cubin's is not believed
    texts = [ptx.replace("max.f32", "min.f32"), ptx]
    shown = stalls_of(every, cubins(), source_of, "", ptx_of=lambda _: texts)
    assert len(shown.files) == 1
    assert shown.files[0].name.startswith("tk")
    # tl.max and tl.sum are in lines 9 and 11
    assert {9, 11} <= {line.line for line in shown.kernels[0].lines}


def test_a_kernel_without_a_line_table_is_told_as_a_whole() -> None:
    shown = stalls_of(samples(), {}, source_of, "")
    assert len(shown.kernels) == len(told().kernels)
    for kernel in shown.kernels:
        assert not kernel.lines
        assert kernel.unattributed == kernel.samples == sum(kernel.reasons.values())
        assert kernel.language == ""


def test_a_damaged_cubin_is_refused_and_nothing_else_happens() -> None:
    chance, cubin = random.Random(36), cubins()[ROW_SOFTMAX_OF_TRITON_3_6]
    ptx: str = json.loads(gzip.decompress(RECORDED.read_bytes()))["ptx"]
    wild = {at: Counter(barrier=1) for at in (0, 0x1C0, 1 << 20, 1 << 63)}
    kernels = {(0, "row_softmax"): KernelSamples({(0, 1)}, wild)}
    # tables that its header leads to
    (sections,) = struct.unpack_from("<Q", cubin, 40)
    tables = [*range(3000), *range(sections, len(cubin))]
    for _ in range(300):
        damaged = bytearray(
            cubin[: chance.choice([len(cubin), chance.randrange(3000)])]
        )
        for _ in range(chance.randrange(1, 20)):
            at = chance.choice(tables)
            damaged[at : at + 1] = bytes([chance.randrange(256)])
        shown = stalls_of(
            Samples("", 0, kernels=kernels),
            {0: bytes(damaged)},
            source_of,
            "",
            ptx_of=lambda _: [ptx],
        )
        assert shown.kernels[0].samples == len(wild)


def test_a_table_that_would_fill_the_memory_is_refused() -> None:
    names = b"\0.debug_line\0.shstrtab\0"
    files = b"\0" + b"f\0\0\0\0" * 20_000 + b"\0"
    head = struct.pack("<BBbBB9x", 1, 1, -5, 14, 10)
    unit = struct.pack("<HI", 2, len(head + files)) + head + files
    program = struct.pack("<I", len(unit)) + unit
    begin = 64 + 3 * 64
    header = struct.pack("<7s11xH20xQ10xHHH", b"\x7fELF\2\1\1", 190, 64, *(64, 3, 2))
    sections = [(0, 0, 0), (1, begin + len(names), len(program))]
    sections.append((len(names) - 10, begin, len(names)))
    table = b"".join(
        struct.pack("<IIQQQQIIQQ", name, 1, 0, 0, at, length, 0, 0, 0, 0)
        for name, at, length in sections
    )
    with pytest.raises(BadCubin, match="too many files"):
        LineTable(header + table + names + program)


def test_short_kernels_are_sampled_more_often() -> None:
    periods = [period_for([time_ns]) for time_ns in (0, 10_000, 10**6, 10**9, 10**14)]
    assert periods == sorted(periods)
    assert periods[0] >= 5
    assert periods[-1] <= 31
    # what takes no time has no say
    assert period_for([10**9, 10]) == period_for([10**9])
