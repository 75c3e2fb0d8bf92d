"""What a learner is told of a source, by the lab of vector add."""

from __future__ import annotations

import dataclasses
from typing import Any

import msgspec
import pytest

from warpbook_labs.checking import check, check_all
from warpbook_labs.drawing import hidden_cases, public_cases
from warpbook_labs.jail.limits import Limits
from warpbook_labs.loader import BadLab, LoadedLab
from warpbook_labs.results import CheckResult
from warpbook_labs.session import find


@pytest.fixture(scope="module")
def lab() -> LoadedLab:
    return find("vector-add")


def right(lab: LoadedLab) -> str:
    """Give a source whose lines the tests know."""
    return lab.correct["one_element_each.cu"]


def checked(lab: LoadedLab, source: str) -> CheckResult:
    cases = public_cases(lab.lab) + hidden_cases(lab.lab, 5)
    return check(lab, source, cases, Limits())


def test_a_right_source_passes_with_its_work_counted_by_line(lab: LoadedLab) -> None:
    result = checked(lab, right(lab))
    assert (result.status, result.right, result.of) == ("passed", 13, 13)
    [block, *_] = result.cases
    assert (block.about, block.sizes) == ("one full block", {"n": 256})
    assert block.counts is not None and block.counts.global_sectors == 96
    assert block.lines[6].global_sectors == block.lines[6].least_global_sectors == 64
    assert "no network" in result.isolation
    assert result.not_graded == ("Speed is not graded without a GPU.",)
    assert msgspec.json.decode(msgspec.json.encode(result), type=CheckResult) == result


def test_of_hidden_failures_the_first_is_told_without_sizes_or_prints(
    lab: LoadedLab,
) -> None:
    source = (
        right(lab)
        .replace("sum < 0 ? 0", "sum < 0 ? 1")
        .replace(
            "if (i >= n) return;", 'if (i >= n) return; if (!i) printf("n is %d", n);'
        )
    )
    result = checked(lab, source)
    assert result.status == "failed"
    hidden = [each for each in result.cases if each.is_hidden and not each.passed]
    assert len(hidden) == 1 and result.of - result.right > 1
    assert (hidden[0].sizes, hidden[0].printed) == (None, "")
    assert result.cases[0].printed == "n is 256"
    wrong = result.cases[0].wrong
    assert wrong is not None and (wrong.got, wrong.expected) == ("1", "0")


def test_a_finding_is_told_with_its_line(lab: LoadedLab) -> None:
    result = checked(lab, lab.wrong["no_bound.cu"])
    failed = next(each for each in result.cases if not each.passed)
    assert failed.findings[0].kind == "out of bounds" and failed.findings[0].line == 5


def test_right_results_with_too_much_traffic_fail(lab: LoadedLab) -> None:
    result = checked(lab, lab.wrong["strided.cu"])
    failed = next(each for each in result.cases if not each.passed)
    assert failed.wrong is None and not failed.findings
    assert "Counted: 1,500 global sectors, at most 387" in failed.message


def test_a_kernel_that_never_ends_is_told_with_its_line(lab: LoadedLab) -> None:
    source = right(lab).replace(
        "float sum", "int k = 0;\n    while (n > 256) { k = k + 1; }\n    float sum"
    )
    limits = Limits(wall_s=90, processor_s=6)
    result = check(lab, source, public_cases(lab.lab), limits)
    assert (result.status, result.right) == ("failed", 1)
    one_block, endless, *others = result.cases
    assert one_block.passed and endless.sizes == {"n": 1000}
    [finding] = endless.findings
    assert (finding.kind, finding.line) == ("too long", 7)
    assert "are on line 7. Does one of its loops never end?" in finding.message
    # there is no time left for these
    assert all("a case before it took too long" in each.message for each in others)


def test_what_does_not_compile_and_what_has_no_rule_are_told(lab: LoadedLab) -> None:
    broken = checked(lab, right(lab).replace("sum;", "sun;"))
    assert (broken.status, broken.of) == ("compile error", 13)
    assert 'kernel.cu(7): error: identifier "sun" is undefined' in broken.log
    assert broken.message == "It does not compile."
    included = checked(lab, f"#include <cuda_fp16.h>\n{right(lab)}")
    assert 'could not open source file "cuda_fp16.h"' in included.log
    assert "It does not compile. No header can be included here" in included.message
    no_rule = checked(lab, right(lab).replace("launch", "lunch"))
    assert no_rule.status == "bad launch rule" and "// launch:" in no_rule.message


@pytest.mark.parametrize(
    ("function", "broken", "words"),
    [
        ("inputs", lambda *_: {}, "inputs: it gives no `x`"),
        ("inputs", lambda *_: {"x": [1], "y": [1]}, "inputs: `x` is"),
        ("expected", lambda *_: 1 / 0, "expected: ZeroDivisionError"),
        ("expected", lambda *_: {"out": [1, 2]}, "expected: `out` is"),
        ("tolerance", lambda *_: {}, "tolerance: it gives no `out`"),
    ],
)
def test_a_lab_whose_own_python_fails_is_a_bad_lab_and_no_mark(
    lab: LoadedLab, function: str, broken: Any, words: str
) -> None:
    cases = dataclasses.replace(lab.cases, **{function: broken})
    with pytest.raises(BadLab, match=f"cases.py: {words}"):
        check_all(
            dataclasses.replace(lab, cases=cases),
            right(lab),
            public_cases(lab.lab),
            Limits(),
        )


def test_a_check_tells_what_a_multiprocessor_holds_of_each_kernel() -> None:
    matmul = find("matmul")
    result = check(matmul, matmul.reference, public_cases(matmul.lab), Limits())
    [held] = result.resources
    assert (held.threads_per_block, held.resources.architecture) == (256, "sm_90")
    assert held.resources.registers > 64 and held.resources.shared_bytes > 0
    # the fastest way of this lab is far from full
    assert held.occupancy == 0.25 and held.limited_by == ("registers",)


def test_what_only_the_assembler_refuses_is_run_all_the_same(lab: LoadedLab) -> None:
    """The interpreter names an instruction that it does not know."""
    source = right(lab).replace("if (", 'asm volatile("frobnicate;"); if (', 1)
    result = checked(lab, source)
    assert result.status != "compile error" and result.resources == ()
