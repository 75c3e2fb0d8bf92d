"""What a learner is told of a source, by the lab of vector add."""

from __future__ import annotations

import dataclasses
from typing import Any

import msgspec
import pytest

from tests.cheats.between import listen
from tests.lab_checks import check, check_all
from warpbook_labs.cases.execution import Launch, Run
from warpbook_labs.cases.sampling import DrawnCase, hidden_cases, public_cases
from warpbook_labs.course.session import find
from warpbook_labs.engines.interpreter.front_ends import _shares
from warpbook_labs.engines.interpreter.jobs import Interpreted
from warpbook_labs.errors import BadLab
from warpbook_labs.grading.table import case_grader_of
from warpbook_labs.lab.loaded import LoadedLab, Submission
from warpbook_labs.results.check import CheckResult
from warpbook_labs.sandbox.parent import Outcome
from warpbook_labs.sandbox.progress import Steps, reported_to
from warpbook_labs.sandbox.work import Job, Limits

LAB = "vector-add"


def right(lab: LoadedLab) -> str:
    """Give a source whose lines the tests know."""
    return lab.correct["one_element_each.cu"]


def checked(lab: LoadedLab, source: str) -> CheckResult:
    cases = public_cases(lab.lab) + hidden_cases(lab.lab, 5)
    return check(lab, source, cases)


def test_a_right_source_passes_with_its_work_counted_by_line(lab: LoadedLab) -> None:
    result = checked(lab, right(lab))
    assert (result.status, result.right, result.of) == ("passed", 14, 14)
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
    hidden = [case for case in result.cases if case.is_hidden and not case.passed]
    assert len(hidden) == 1 and result.of - result.right > 1
    assert (hidden[0].sizes, hidden[0].printed) == (None, "")
    assert result.cases[0].printed == "n is 256"
    wrong = result.cases[0].wrong
    assert wrong is not None and (wrong.got, wrong.expected) == ("1", "0")


def test_a_finding_is_told_with_its_line(lab: LoadedLab) -> None:
    result = checked(lab, lab.wrong["no_bound.cu"])
    failed = next(case for case in result.cases if not case.passed)
    assert failed.findings[0].kind == "out of bounds" and failed.findings[0].line == 5


def test_right_results_with_too_much_traffic_fail(lab: LoadedLab) -> None:
    result = checked(lab, lab.wrong["strided.cu"])
    failed = next(case for case in result.cases if not case.passed)
    assert failed.wrong is None and not failed.findings
    assert "Counted: 1,500 global sectors, at most 637" in failed.message


def test_a_wrong_source_may_stop_at_its_first_wrong_case(lab: LoadedLab) -> None:
    cases = public_cases(lab.lab) + hidden_cases(lab.lab, 5)
    engines = case_grader_of(lab.lab).engines
    sources = lab.wrong["no_bound.cu"], right(lab)
    wrong, passing = (
        engines.check(Submission(lab, source, stops_at_wrong=True), cases)
        for source in sources
    )
    whole = engines.check(Submission(lab, sources[0]), cases)
    assert wrong.status == "failed" and len(wrong.cases) < len(cases)
    first = next(case for case in wrong.cases if not case.passed)
    assert first in whole.cases and len(whole.cases) == len(cases)
    assert (passing.status, passing.right) == ("passed", len(cases))


def test_a_wrong_program_may_stop_behind_the_cases_that_are_shown() -> None:
    lab = find("fix-the-stream")
    shown = public_cases(lab.lab)
    cases = shown + hidden_cases(lab.lab, 5)
    submission = Submission(lab, lab.starter, stops_at_wrong=True)
    result = case_grader_of(lab.lab).engines.check(submission, cases)
    assert (result.status, result.of) == ("failed", len(shown))
    assert len(result.cases) == len(shown) < len(cases)


def test_a_kernel_that_never_ends_is_told_with_its_line(lab: LoadedLab) -> None:
    source = right(lab).replace(
        "float sum", "int k = 0;\n    while (n > 256) { k = k + 1; }\n    float sum"
    )
    limits = Limits(processor_s=6, asleep_s=90)
    result = check(lab, source, public_cases(lab.lab), limits)
    assert result.status == "failed"
    one_block, endless, *_ = result.cases
    assert one_block.passed and endless.sizes == {"n": 1000}
    [finding] = endless.findings
    assert (finding.kind, finding.line) == ("too long", 7)
    assert finding.message == "The loop on line 7 never ends: it has no way out."


def test_a_kernel_that_writes_an_input_fails_though_its_result_is_right(
    lab: LoadedLab,
) -> None:
    source = right(lab).replace("out[i] =", "((float*)x)[i] = 0; out[i] =")
    result = checked(lab, source)
    assert result.status == "failed" and result.right == 0
    first = result.cases[0]
    assert first.message == "read-only: It writes `x`, which is an input."
    assert [finding.kind for finding in first.findings] == ["read-only"]
    line = 1 + source[: source.index("((float*)x)[i] = 0")].count("\n")
    assert first.findings[0].line == line


def test_what_does_not_compile_and_what_has_no_rule_are_told(lab: LoadedLab) -> None:
    broken = checked(lab, right(lab).replace("sum;", "sun;"))
    assert (broken.status, broken.of) == ("compile error", 14)
    assert 'kernel.cu(7): error: identifier "sun" is undefined' in broken.log
    assert broken.message == "It does not compile."
    included = checked(lab, f'#include "my_own.h"\n{right(lab)}')
    assert 'open source file "my_own.h"' in included.log
    assert "It does not compile. Only the headers for device code" in included.message
    no_rule = checked(lab, right(lab).replace("launch", "lunch"))
    assert no_rule.status == "bad launch rule" and "// launch:" in no_rule.message


KERNEL = (
    'extern "C" __global__ void add_relu(const float* x, const float* y, float* out, '
    "int n) {\n    int i = blockIdx.x * blockDim.x + threadIdx.x;\n"
    "    if (i < n) { HERE; out[i] = fmaxf(x[i] + y[i], 0.0f); }\n}\n"
)


@pytest.mark.parametrize(
    ("before", "body", "status", "words"),
    [
        ("#include <memory.h>", "", "compile error", "Only the headers for device"),
        ("int k() { return 1; }", "int j = k()", "compile error", "write `__device__`"),
        ("#include <thrust/sort.h>", "", "unsupported", "Line 2: `thrust/"),
        ("", "if (i == 3) __trap()", "failed", "gave up on line 5 (`__trap`)"),
    ],
)
def test_what_nvrtc_has_otherwise_than_nvcc_is_told(
    lab: LoadedLab, before: str, body: str, status: str, words: str
) -> None:
    rule = "// launch: add_relu<<<ceil_div(n, 256), 256>>>(x, y, out, n)"
    source = f"{rule}\n{before}\n{KERNEL.replace('HERE', body)}"
    result = check(lab, source)
    assert result.status == status
    assert words in f"{result.message} {[case.message for case in result.cases]}"
    assert "cooperative_groups" not in result.log


@pytest.mark.parametrize(
    "included", ["", "cooperative_groups.h", "cuda/std/limits", "math.h", "climits"]
)
def test_headers_and_names_that_nvcc_has_are_taken(
    lab: LoadedLab, included: str
) -> None:
    source = right(lab).replace('extern "C" ', "")
    bounds = "__device__ bool is_bound(float x, int k) {\n"
    bounds += (
        "    return x == -INFINITY || x == NAN || k == INT_MAX || k == INT_MIN;\n}"
    )
    include = f"#include <{included}>" * bool(included)
    result = checked(lab, f"{include}\n{bounds}\n{source}")
    assert result.status == "passed"
    assert result.resources[0].resources.kernel == "add_relu"


def test_a_counter_that_is_not_put_back_spoils_the_second_call(lab: LoadedLab) -> None:
    body = """
// launch: add<<<ceil_div(n, 256), 256>>>(x, y, out, n)
__device__ unsigned taken;
__global__ void add(const float* x, const float* y, float* out, int n) {
    __shared__ unsigned block;
    if (threadIdx.x == 0) block = TAKE;
    __syncthreads();
    int i = block * 256 + threadIdx.x;
    if (i >= n) return;
    float sum = x[i] + y[i];
    out[i] = sum < 0 ? 0 : sum;
}"""
    never = checked(lab, body.replace("TAKE", "atomicAdd(&taken, 1)"))
    assert never.status == "failed"
    assert "Called a second time, with its `__device__` var" in never.cases[0].message
    wraps = checked(lab, body.replace("TAKE", "atomicInc(&taken, gridDim.x - 1)"))
    # its counter costs a sector, and no result
    assert all(case.passed or case.is_beyond for case in wraps.cases)


def test_four_floats_at_a_time_must_ask_where_a_buffer_begins(lab: LoadedLab) -> None:
    source = """
// launch: add<<<ceil_div(n, 256), 64>>>(x, y, out, n)
__device__ float relu(float v) { return v < 0 ? 0 : v; }
__global__ void add(const float* x, const float* y, float* out, int n) {
    int i = 4 * (blockIdx.x * 64 + threadIdx.x);
    if (ASK i + 3 < n) {
        float4 a = *(float4*)(x + i), b = *(float4*)(y + i);
        *(float4*)(out + i) = make_float4(
            relu(a.x + b.x), relu(a.y + b.y), relu(a.z + b.z), relu(a.w + b.w));
    } else
        for (; i < n && i < 4 * (blockIdx.x * 64 + threadIdx.x + 1); i++)
            out[i] = relu(x[i] + y[i]);
}"""
    careless = checked(lab, source.replace("ASK", ""))
    failed = next(case for case in careless.cases if not case.passed)
    assert failed.is_hidden and failed.findings[0].kind == "misaligned"
    ask = "((size_t)x | (size_t)y | (size_t)out) % 16 == 0 &&"
    careful = checked(lab, source.replace("ASK", ask))
    # what it does with each element by itself is more traffic, and right
    assert all(case.passed or case.is_beyond for case in careful.cases)
    case = DrawnCase("off by an element", {"n": 1000}, "random", 1, is_hidden=True)
    own = source.replace("ASK", ask)
    assert check(lab, own, [case]).status == "passed"
    to_the_end = own.replace("&& i < 4 * (blockIdx.x * 64 + threadIdx.x + 1)", "")
    assert check(lab, to_the_end, [case]).cases[0].is_beyond


@pytest.mark.parametrize(
    ("old", "new"),
    [
        ("int i = ", "unsigned short i = "),
        ("ceil_div(n, 256), 256>>>", "min(ceil_div(n, 256), 200), 256>>>"),
    ],
)
def test_what_holds_for_small_sizes_only_fails(
    lab: LoadedLab, old: str, new: str
) -> None:
    source = right(lab)
    assert old in source
    assert checked(lab, source.replace(old, new)).right == 13


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
        )


def test_a_check_tells_what_a_multiprocessor_holds_of_each_kernel() -> None:
    matmul = find("matmul")
    result = check(matmul, matmul.reference)
    [held] = result.resources
    assert (held.threads_per_block, held.resources.architecture) == (256, "sm_90")
    assert held.resources.registers > 64 and held.resources.shared_bytes > 0
    # the fastest way of this lab is far from full
    assert held.occupancy == 0.25 and held.limited_by == ("registers",)


def test_blocks_with_more_registers_than_there_are_are_refused(lab: LoadedLab) -> None:
    source = """// launch: add<<<ceil_div(n, 1024), 1024>>>(x, y, out, n)
__global__ void add(const volatile float* x, const float* y, float* out, int n) {
    int i = blockIdx.x * 1024 + threadIdx.x;
    float held[90], sum = 0;
#pragma unroll
    for (int j = 0; j < 90; j++) held[j] = x[i < n ? i : 0];
    __syncthreads();
#pragma unroll
    for (int j = 0; j < 90; j++) sum += held[j] * x[i < n ? i : 0];
    if (i < n) out[i] = fmaxf(x[i] + y[i] + 0 * sum, 0);
}"""
    result = check(lab, source)
    assert result.status == "bad launch rule"
    assert "registers; no GPU has more than 65,536" in result.message


def test_what_only_the_assembler_refuses_is_run_all_the_same(lab: LoadedLab) -> None:
    """The interpreter names an instruction that it does not know."""
    source = right(lab).replace("if (", 'asm volatile("frobnicate;"); if (', 1)
    result = checked(lab, source)
    assert result.status != "compile error" and result.resources == ()


@pytest.mark.parametrize("name", ["vector-add", "thread-and-block", "zero-copy"])
def test_how_far_a_check_is_is_reported_case_by_case(name: str) -> None:
    lab = find(name)
    reported: list[tuple[int, int]] = []
    with reported_to(lambda done, of: reported.append((done, of))):
        cases = public_cases(lab.lab)
        assert check(lab, lab.reference, cases).status == "passed"
    of = len(cases)
    assert {entry[1] for entry in reported} == {of}
    assert reported[0] == (0, of) and reported[-1] == (of, of)
    assert sorted(reported) == reported


def test_steps_that_a_learner_invents_are_no_more_than_there_are() -> None:
    reported: list[tuple[int, int]] = []
    with reported_to(lambda done, of: reported.append((done, of))):
        steps = Steps(3)
    steps.add(999)
    steps.add(1)
    assert reported == [(0, 3), (3, 3), (3, 3)]


STORES = """// launch: add_relu<<<ceil_div(n, 256), 256>>>(x, y, out, n)
// launch: last<<<1, 32>>>(out, n)
extern "C" __global__ void add_relu(const float* x, const float* y, float* out, int n) {
    int i = blockIdx.x * blockDim.x + threadIdx.x;
    if (i >= n) return;
    float sum = x[i] + y[i];
    if (i % 2)
        out[i] = ODD;
    else
        out[i] = sum < 0 ? 0 : sum;
}
extern "C" __global__ void last(float* out, int n) {
    if (threadIdx.x == 0) LAST
}
"""


@pytest.mark.parametrize(
    ("odd", "last", "line"),
    [
        ("sum", ";", 8),
        ("sum < 0 ? 0 : sum", "out[3] = 7;", 13),
        ("sum < 0 ? 0 : sum", "atomicAdd(out + 4, 1.0f);", 13),
        ("sum < 0 ? 0 : sum", "((float2*)out)[2] = make_float2(-1, -1);", 13),
    ],
)
def test_a_wrong_element_names_the_line_that_wrote_it_last(
    lab: LoadedLab, odd: str, last: str, line: int
) -> None:
    source = STORES.replace("ODD", odd).replace("LAST", last)
    result = check(lab, source)
    first = result.cases[0]
    assert first.wrong is not None and first.wrong.line == first.line == line
    assert f" Line {line} wrote it last" in first.message


def test_a_wrong_element_names_the_lines_that_computed_it(lab: LoadedLab) -> None:
    source = right(lab).replace("float sum", "float odd = 0.5f * i;\n    float sum")
    source = source.replace("sum < 0 ? 0 : sum", "odd")
    result = check(lab, source)
    first, second, *_ = result.cases
    assert first.wrong is not None and 6 in first.wrong.from_lines
    assert " wrote it last, from what lines " in first.message
    # the case is run once more for it, and the others are not
    assert second.wrong is not None and second.wrong.from_lines == ()


def test_an_element_that_nobody_wrote_names_its_neighbours_store_and_the_launch(
    lab: LoadedLab,
) -> None:
    source = right(lab).replace("if (i >= n) return;", "if (i >= n - 1) return;")
    first = check(lab, source).cases[0]
    assert first.wrong is not None and first.wrong.got == "nothing"
    assert first.wrong.launch_lines == (1,) and 5 in first.wrong.from_lines
    assert "and the launch on line 1 decide where, and which threads do." in (
        first.message
    )


def test_what_was_never_written_names_no_line(lab: LoadedLab) -> None:
    result = checked(lab, STORES.replace("out[i] = ODD;", ";").replace("LAST", ";"))
    first = result.cases[0]
    assert first.wrong is not None and first.wrong.got == "nothing"
    assert first.wrong.line is None and "wrote it last" not in first.message


@pytest.mark.parametrize("lines", [b"", b"\xff", b"\xff\xff" * 4096, b"\0" * 9])
def test_lines_that_a_jailed_process_invents_are_not_believed(
    lab: LoadedLab, monkeypatch: pytest.MonkeyPatch, lines: bytes
) -> None:
    def forge(_: Job[Any], outcome: Outcome[Any]) -> None:
        if isinstance(outcome.result, Interpreted):
            for run in outcome.result.runs:
                for memory in run.memory:
                    msgspec.structs.force_setattr(memory, "writer_lines", lines)

    listen(monkeypatch, forge)
    result = checked(lab, right(lab).replace("sum < 0 ? 0 :", ""))
    assert result.status == "failed"
    assert {case.line for case in result.cases} == {None}


def test_a_case_of_many_blocks_has_a_process_for_itself() -> None:
    blocks = (6, 5, 40, 1, 0, 7)
    runs = [
        Run((), (Launch("kernel", (count, 1, 1), (32, 1, 1), ()),)) for count in blocks
    ]
    assert _shares(runs, 2) == [[2], [0, 1, 3, 4, 5]]
    # each process has one, whatever they are
    assert sorted(_shares(runs[4:] + runs[4:5], 3)) == [[0], [1], [2]]
