"""A lab in Triton is written like one in CUDA, with scalars, scratch and atomics."""

from __future__ import annotations

from pathlib import Path

import pytest

from tests.lab_checks import check
from warpbook_labs.cases.sampling import hidden_cases, public_cases
from warpbook_labs.course.authoring import new_lab
from warpbook_labs.course.session import find
from warpbook_labs.errors import BadLab
from warpbook_labs.lab.loader import load

RIGHT = """# launch: scale[ceil_div(n, 128)](x, factor, out, n, BLOCK=128)
import triton
import triton.language as tl

@triton.jit
def scale(x, factor, out, n, BLOCK: tl.constexpr):
    i = tl.program_id(0) * BLOCK + tl.arange(0, BLOCK)
    tl.store(out + i, tl.load(x + i, mask=i < n) * factor, mask=i < n)
"""
#: the long way: a copy in scratch memory, and each element added to a zero
LONG = """# scratch: copy float32[n]
# launch: keep[(ceil_div(n, 64), 1)](x, copy, n, BLOCK=64, num_warps=2)
# launch: scale[1, ceil_div(n, 256)](copy, factor, out, n, BLOCK=256, EACH=n)
import triton
import triton.language as tl

@triton.jit
def keep(x, copy, n, BLOCK: tl.constexpr):
    i = tl.program_id(0) * BLOCK + tl.arange(0, BLOCK)
    tl.store(copy + i, tl.load(x + i, mask=i < n), mask=i < n)

@triton.jit
def scale(copy, factor, out, n, BLOCK: tl.constexpr, EACH: tl.constexpr):
    i = tl.program_id(1) * BLOCK + tl.arange(0, BLOCK)
    inside = i < EACH
    held = tl.load(copy + i, mask=inside) * factor
    tl.store(out + i, tl.zeros([BLOCK], tl.float32), mask=inside)
    tl.atomic_add(out + i, held, mask=inside)
"""


@pytest.fixture
def lab(tmp_path: Path) -> Path:
    return new_lab("my-lab", tmp_path, "triton")


def test_a_line_that_counts_as_much_as_others_is_named_with_them() -> None:
    loaded = find("fused-norm")
    kept, read = (
        "added.to(tl.float32)",
        "tl.load(total + row + i, mask=inside, other=0.0)",
    )
    assert kept in loaded.reference
    source = loaded.reference.replace(kept, f"{read}.to(tl.float32)")
    [line] = [n for n, words in enumerate(source.splitlines(), 1) if read in words]
    result = check(loaded, source, public_cases(loaded.lab)[:1])
    [case] = result.cases
    assert "Most of it comes from" in case.message
    assert f"line {line}," in case.message


def test_scalars_scratch_memory_and_atomics_work(lab: Path) -> None:
    loaded = load(lab)
    cases = public_cases(loaded.lab) + hidden_cases(loaded.lab, 3)
    for source in (RIGHT, LONG):
        result = check(loaded, source, cases)
        failed = [case.message for case in result.cases if not case.passed]
        # the long way costs more sectors than this lab allows, and nothing else
        assert (result.status == "passed") == (source == RIGHT), result.message
        assert all("Counted: " in message for message in failed), result.log
        counts = result.cases[0].counts
        atomics = cases[0].sizes["n"] if source == LONG else 0
        assert counts is not None and counts.global_atomics == atomics


def test_what_its_interpreter_can_t_count_is_no_bound_for_triton(lab: Path) -> None:
    text = (lab / "lab.toml").read_text()
    (lab / "lab.toml").write_text(text.replace("global_sectors", "bank_conflicts"))
    with pytest.raises(BadLab, match="counted: bank_conflicts: of Triton"):
        load(lab)


def test_a_source_that_is_no_triton_makes_a_bad_lab(lab: Path) -> None:
    (lab / "solutions" / "wrong" / "no_mask.py").write_text(f"import os\n{RIGHT}")
    with pytest.raises(BadLab, match=r"no_mask\.py: Line 1: a kernel's file"):
        load(lab)
