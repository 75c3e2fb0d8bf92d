"""What a learner is told of a Triton source, by the lab of thread and block."""

from __future__ import annotations

import importlib
import re
import subprocess
from pathlib import Path

import pytest

from tests.cubins import code_of
from tests.lab_checks import check
from warpbook_labs.cases.sampling import DrawnCase, hidden_cases, public_cases
from warpbook_labs.compiler.jobs import Compiled, CompileTriton
from warpbook_labs.compiler.programs import job_of
from warpbook_labs.course.notebook import open_lab
from warpbook_labs.course.session import find
from warpbook_labs.errors import NotInstalled
from warpbook_labs.lab.loaded import LoadedLab, Submission
from warpbook_labs.results.check import CaseResult, CheckResult
from warpbook_labs.sandbox import parent, warm
from warpbook_labs.sandbox.work import Limits

LAB = "thread-and-block"

_DESCRIBED = """    described = tl.make_tensor_descriptor(x, [n, 4], [4, 1], [4, 4])
    described.store([0, 0], tl.zeros((4, 4), tl.float32))
    inside"""


def checked(lab: LoadedLab, source: str) -> CheckResult:
    cases = public_cases(lab.lab) + hidden_cases(lab.lab, 5)[:3]
    return check(lab, source, cases)


def failed(result: CheckResult) -> CaseResult:
    assert result.status == "failed"
    return next(case for case in result.cases if not case.passed)


def test_a_right_source_passes_with_its_sectors_counted_by_line(lab: LoadedLab) -> None:
    result = checked(lab, lab.reference)
    assert (result.status, result.right, result.of) == ("passed", 6, 6)
    block = result.cases[0]
    assert block.counts is not None and block.counts.global_sectors == 3 * 1024 // 8
    assert {line: counts.global_sectors for line, counts in block.lines.items()} == {
        10: 256,
        11: 128,
    }
    assert "no network" in result.isolation


@pytest.mark.parametrize(
    ("old", "new", "line", "words"),
    [
        (
            "total), mask=inside)",
            "total))",
            11,
            "Program 2 writes `out[3000]`, and `out` has 3,000 elements; and 71 more",
        ),
        (
            "tl.load(y + i, mask=inside)",
            "tl.load(y + i)",
            10,
            "Program 2 reads `y[3000]`, and `y` has 3,000 elements; and 71 more",
        ),
        (
            "tl.load(x + i, mask=inside)",
            "tl.load(x + i - 5, mask=inside)",
            10,
            "Program 0 reads `x[-5]`, and `x` has 1,024 elements; and 4 more",
        ),
        (
            "tl.load(x + i, mask=inside)",
            "tl.load(out + i, mask=inside)",
            10,
            "Program 0 reads `out[0]`, which nobody wrote",
        ),
        (
            "* BLOCK +",
            "* 512 +",
            11,
            "Program 1 writes `out[512]`, which program 0 wrote, too",
        ),
        (
            "tl.store(out + i,",
            "tl.store(out + i // 2,",
            11,
            "Program 0 writes `out[0]` twice at once, with other values",
        ),
        (
            "tl.store(out + i,",
            "tl.store(x + (i + 1024) % n, total, mask=inside)\n    tl.store(out + i,",
            10,
            "Program 1 reads `x[1024]`, which program 0 wrote",
        ),
        (
            "tl.store(out + i,",
            "if tl.program_id(0) == 0:\n        tl.store(out, 0.0)\n"
            "    tl.atomic_add(out, 1.0)\n    tl.store(out + 1 + i,",
            13,
            "Program 1 updates `out[0]`, which program 0 wrote",
        ),
    ],
)
def test_a_stray_or_racing_access_is_told_with_program_element_and_line(
    lab: LoadedLab, old: str, new: str, line: int, words: str
) -> None:
    findings = [
        finding
        for case in checked(lab, lab.reference.replace(old, new)).cases
        for finding in case.findings
    ]
    assert [
        finding
        for finding in findings
        if words in finding.message and finding.line == line
    ]


def test_of_a_hidden_case_a_stray_access_is_told_without_the_buffers_size(
    lab: LoadedLab,
) -> None:
    case = DrawnCase("hidden", {"n": 3000}, "random", 1, True)
    source = lab.reference.replace("tl.load(y + i, mask=inside)", "tl.load(y + i)")
    [case_result] = check(lab, source, [case]).cases
    assert (
        "Program 2 reads `y[3000]`, outside of the buffer; and 71"
        in case_result.message
    )
    assert case_result.findings[0].message in case_result.message


def test_what_the_interpreter_takes_and_the_compiler_does_not_is_a_compile_error(
    lab: LoadedLab,
) -> None:
    for old, new, words in (
        ("total < 0, 0.0", "total < 0, tl.erf(total)", "`add_relu` needs erff() of"),
        ("inside = i < n", "inside = i < total", "Line 9: "),
        ("tl.arange(0, BLOCK)", "tl.arange(0, n)", "Line 8: "),
        ("BLOCK=1024", "BLOCK=1000", "Line 8: arange's range must be a power of 2"),
        (
            "    inside",
            "    s = n\n    for k in range(n):\n        s = s + 0.5\n    inside",
            "Line 10: `s` is int32 before the loop, and fp32 in it: it must have one",
        ),
        ("    inside", _DESCRIBED, "`add_relu` makes tensor descriptors, which can't"),
    ):
        result = checked(lab, lab.reference.replace(old, new))
        assert result.status == "compile error"
        assert result.log.startswith(words), result.log


def test_friendly_errors_name_the_line_before_anything_is_run(lab: LoadedLab) -> None:
    result = checked(lab, lab.reference.replace("inside = i < n", "import os"))
    assert (result.status, result.cases) == ("compile error", ())
    assert result.message == "Line 9: Imports stand at the top of the file."
    result = checked(lab, lab.reference.replace("ceil_div(n, 1024)", "rows"))
    assert result.status == "bad launch rule" and "no `rows`" in result.message


def test_nan_is_what_a_gpu_makes_of_it(lab: LoadedLab) -> None:
    case = failed(checked(lab, lab.wrong["nan_becomes_zero.py"]))
    assert case.wrong is not None
    assert (case.wrong.got, case.wrong.expected) == ("0", "nan")


def test_what_a_kernel_prints_is_told_and_bounded(lab: LoadedLab) -> None:
    printing = '    tl.device_print("n is", n)\n    inside'
    result = checked(lab, lab.reference.replace("    inside", printing, 1))
    assert result.status == "passed"
    assert "n is" in result.cases[0].printed and "1024" in result.cases[0].printed
    many = "    for k in range(0, 1000):\n        tl.device_print('i', i)\n    inside"
    result = checked(lab, lab.reference.replace("    inside", many, 1))
    assert result.status == "passed" and len(result.cases[0].printed) <= 4_000


def test_for_a_gpu_each_kind_of_numbers_has_a_kernel_of_its_own(lab: LoadedLab) -> None:
    job = job_of(
        Submission(lab, lab.reference), "sm_90", [{"n": 4096}, {"n": 77}, {"n": 160}]
    )
    assert isinstance(job, CompileTriton)
    assert [variant.even for variant in job.variants] == [(0, 1, 2, 3), (0, 1, 2)]
    result = parent.run(job).result
    assert isinstance(result, Compiled)
    for variant in job.variants:
        assert f".visible .entry {variant.entry}(" in result.ptx
    # four floats at once where 16 divides all
    assert "ld.global.v4" in result.ptx and ".target sm_90" in result.ptx


def test_lines_are_the_learners_own_and_change_no_instruction(
    lab: LoadedLab, tmp_path: Path
) -> None:
    """What is inlined of Triton's library is given to the line that calls it."""
    source = lab.reference.replace("0.0, total)", "0.0, total + tl.sum(total) * 0)")
    assert source != lab.reference
    called = 1 + source[: source.index("tl.sum(total)")].count("\n")
    job = job_of(Submission(lab, source), "sm_90", [{"n": 4096}, {"n": 77}])
    result = parent.run(job).result
    assert isinstance(result, Compiled)
    assert result.ptx.count(".file") == 1 and "standard.py" not in result.ptx
    lines = {int(n) for n in re.findall(r"\.loc\t1 (\d+) ", result.ptx)}
    assert called in lines and max(lines) <= source.count("\n")
    # the driver's assembler is a part of ptxas, which comes with Triton
    [ptxas] = Path(importlib.import_module("triton").__file__).parent.glob(
        "backends/nvidia/bin/ptxas"
    )
    code = []
    for name, text, option in (
        ("with", result.ptx, "-lineinfo"),
        (
            "without",
            re.sub(r"^\s*\.(loc|file)\b.*\n", "", result.ptx, flags=re.M),
            "-v",
        ),
    ):
        (tmp_path / f"{name}.ptx").write_text(text)
        files = tmp_path / f"{name}.ptx", "-o", tmp_path / f"{name}.cubin"
        subprocess.run([ptxas, "--gpu-name", "sm_90a", option, *files], check=True)
        code.append(code_of((tmp_path / f"{name}.cubin").read_bytes()))
    assert code[0] == code[1] and len(code[0]) == 2


def test_roots_and_powers_are_instructions_of_the_compiled_program(
    lab: LoadedLab,
) -> None:
    powers = "tl.sqrt(total * total) * tl.rsqrt(total * total) * tl.exp2(total)"
    source = lab.reference.replace("0.0, total)", f"0.0, {powers})")
    job = job_of(Submission(lab, source), "sm_90", [{"n": 4096}, {"n": 77}])
    assert isinstance(job, CompileTriton)
    result = parent.run(job).result
    assert isinstance(result, Compiled)
    for instruction in ("sqrt.approx", "rsqrt.approx", "ex2.approx"):
        assert f"{instruction}.ftz.f32" in result.ptx
    # a call for each of them would take many times as long
    assert "call" not in result.ptx and ".func" not in result.ptx


def test_a_power_that_nothing_reads_is_no_call(lab: LoadedLab) -> None:
    """Triton 3.6 makes such calls itself, where it wants a number in two layouts."""
    pairs = "tl.reshape(tl.exp2(total), (total.shape[0] // 2, 2))"
    source = lab.reference.replace(
        "    tl.store(", f"    first, _ = tl.split({pairs})\n    tl.store(", 1
    ).replace("0.0, total)", "0.0, tl.interleave(first, first))")
    job = job_of(Submission(lab, source), "sm_90", [{"n": 4096}])
    assert isinstance(job, CompileTriton)
    result = parent.run(job).result
    assert isinstance(result, Compiled), result
    assert "ex2.approx.ftz.f32" in result.ptx and "__nv_" not in result.ptx


def test_opening_the_lab_gives_a_python_file(lab: LoadedLab, tmp_path) -> None:
    source = open_lab(lab, tmp_path).source
    assert source.name == "kernel.py" and "@triton.jit" in source.read_text()


def test_without_triton_it_is_said_how_to_install_it(
    lab: LoadedLab, tmp_path, monkeypatch: pytest.MonkeyPatch
) -> None:
    (tmp_path / "triton.py").write_text("raise ImportError('No module named triton')")
    monkeypatch.syspath_prepend(tmp_path)
    # what is warm has loaded it
    warm.close()
    with pytest.raises(NotInstalled, match=r"pip install 'warpbook-labs\[triton\]'"):
        checked(lab, lab.reference)


def test_a_kernel_that_never_ends_is_told_with_its_line(lab: LoadedLab) -> None:
    lines = lab.reference.splitlines()
    at = next(n for n, line in enumerate(lines) if "tl.store(" in line)
    lines[at:at] = ["    k = 0", "    while n > 1024:", "        k = k + 1"]
    result = check(
        lab,
        "\n".join(lines),
        public_cases(lab.lab),
        Limits(processor_s=4, asleep_s=90),
    )
    assert result.status == "failed"
    endless = [case for case in result.cases if case.findings]
    assert {case.findings[0].kind for case in endless} == {"too long"}
    lines_told = {case.findings[0].line for case in endless}
    assert lines_told <= {at + 2, at + 3} and lines_told
    assert all("loops never end?" in case.message for case in endless)
    others = [case for case in result.cases if not (case.passed or case.findings)]
    assert all("a case before it took too long" in other.message for other in others)


TUNED = """# launch: add_relu[ceil_div(n, BLOCK)](x, y, out, n)
import triton
import triton.language as tl


@triton.autotune(
    configs=[
        triton.Config({"BLOCK": 256}, num_warps=2),
        triton.Config({"BLOCK": SECOND}, num_warps=4, num_stages=2),
    ],
    key=["n"],
)
@triton.jit
def add_relu(x, y, out, n, BLOCK: tl.constexpr):
    i = tl.program_id(0) * BLOCK + tl.arange(0, BLOCK)
    inside = i < n
    total = tl.load(x + i, mask=inside) + tl.load(y + i, mask=inside)
    kept = tl.maximum(total, 0.0, propagate_nan=tl.PropagateNan.ALL)
    tl.store(out + i, kept, mask=MASK)
"""


def test_every_configuration_of_autotune_is_checked(lab: LoadedLab) -> None:
    source = TUNED.replace("SECOND", "1024")
    right = checked(lab, source.replace("MASK", "inside"))
    assert (right.status, right.of) == ("passed", 6)
    # right with the first configuration alone
    case = failed(checked(lab, source.replace("MASK", "inside & (BLOCK < 512)")))
    assert case.wrong is not None and case.wrong.index == (0,)
    bad = checked(lab, TUNED.replace("SECOND", "1000").replace("MASK", "inside"))
    assert "Line 15: arange's range must be a power of 2" in bad.log + bad.message


def test_inline_assembly_is_run_by_the_interpreter_of_ptx(lab: LoadedLab) -> None:
    def run_assembly(text: str, constraints: str) -> CheckResult:
        call = (
            f'tl.inline_asm_elementwise("{text}", "{constraints}", [total], '
            "dtype=tl.float32, is_pure=True, pack=1)"
        )
        plain = "tl.where(total < 0, 0.0, total)"
        assert plain in lab.reference
        return checked(lab, lab.reference.replace(plain, call))

    assert run_assembly("max.NaN.f32 $0, $1, 0f00000000;", "=f,f").status == "passed"
    own = "{ .reg .f32 t; max.NaN.f32 t, $1, 0f00000000; mov.f32 $0, t; }"
    assert run_assembly(own, "=f,f").status == "passed"
    wrong = failed(run_assembly("max.f32 $0, $1, 0f00000000;", "=f,f"))
    assert wrong.wrong is not None and wrong.wrong.expected == "nan"


def test_a_wrong_element_names_the_line_that_wrote_it_last(lab: LoadedLab) -> None:
    lines = lab.reference.splitlines()
    at = next(n for n, line in enumerate(lines, 1) if "tl.store(" in line)
    lines[at - 1] = lines[at - 1].replace(
        "tl.store(out + i, ", "tl.store(out + i, 1 + "
    )
    result = check(lab, "\n".join(lines))
    first = result.cases[0]
    assert first.wrong is not None and first.wrong.line == first.line == at
    assert f" Line {at} wrote it last" in first.message


def test_what_the_interpreter_alone_can_not_do_is_not_supported() -> None:
    lab = find("thread-and-block")
    source = """# launch: add[ceil_div(n, 512)](x, y, out, n, SIZE=512)
import triton
import triton.language as tl


@triton.jit
def add(x, y, out, n, SIZE: tl.constexpr):
    i = tl.program_id(0) * SIZE + tl.arange(0, SIZE)
    sum = (tl.load(x + i, mask=i < n) + tl.load(y + i, mask=i < n)).to(tl.bfloat16)
    tl.atomic_add(out.to(tl.pointer_type(tl.bfloat16)) + i, sum, mask=i < n)
"""
    result = check(lab, source)
    assert result.status == "unsupported" and "Line 10: " in result.message
