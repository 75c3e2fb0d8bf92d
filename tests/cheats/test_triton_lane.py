"""Triton files that try to cheat, break or outlast the lane without a GPU.

What the parent refuses is sent past it here, straight into the process that interprets.
"""

from __future__ import annotations

import numpy as np
import pytest
from msgspec import Struct

from tests.cheats.between import listen
from tests.lab_checks import check
from warpbook_labs.cases import execution
from warpbook_labs.cases.sampling import DrawnCase, public_cases
from warpbook_labs.course.session import find
from warpbook_labs.engines.interpreter.front_ends import TritonFrontEnd
from warpbook_labs.engines.interpreter.jobs import (
    Interpreted,
    InterpretTriton,
    RunResult,
)
from warpbook_labs.lab.loaded import LoadedLab
from warpbook_labs.sandbox import parent
from warpbook_labs.sandbox.parent import Outcome
from warpbook_labs.sandbox.work import Limits

HEAD = "import triton\nimport triton.language as tl\n"
KERNEL = """
@triton.jit
def add_relu(x, y, out, n, BLOCK: tl.constexpr):
    i = tl.program_id(0) * BLOCK + tl.arange(0, BLOCK)
    {body}
"""
RIGHT = "pass"
N = 3000


@pytest.fixture(scope="module")
def lab() -> LoadedLab:
    return find("thread-and-block")


@pytest.fixture(scope="module")
def case(lab: LoadedLab) -> DrawnCase:
    return public_cases(lab.lab)[1]


def sent(top: str = "", body: str = RIGHT, limits: Limits | None = None) -> Outcome:
    """Have a source run in the jail as if it had been read and found right."""
    x = np.ones(N, np.float32).tobytes()
    memory = [
        execution.Memory(name, 4 * N, data, data is None, dtype="float32")
        for name, data in (("x", x), ("y", x), ("out", None))
    ]
    arguments = [execution.BufferArgument(buffer.name) for buffer in memory]
    launch = execution.Launch(
        "add_relu",
        (3, 1, 1),
        (128, 1, 1),
        (*arguments, execution.IntegerArgument(N)),
        constants=(("BLOCK", 1024), ("num_warps", 4), ("num_stages", 3)),
    )
    source = HEAD + top + KERNEL.format(body=body)
    run = execution.Run(tuple(memory), (launch,))
    return parent.run(InterpretTriton(source, (run,)), limits)


def ran(outcome: Outcome) -> RunResult:
    assert outcome.status == "done", outcome.message
    assert isinstance(outcome.result, Interpreted)
    return outcome.result.runs[0]


#: any Python, at the top of a file or in a kernel; none of it may be run
PYTHON = {
    "a file": "print(open('/etc/passwd').read())",
    "a module": "import os; print(os.getpid())",
    "the interpreter's memory": (
        "import sys; print(sys._getframe(3).f_locals['memory']._held)"
    ),
    "an end": "import os; os._exit(0)",
    "a crash": "import ctypes; ctypes.string_at(0)",
    "no end": "while True: pass",
    "all memory": "held = bytearray(1 << 40)",
    "a forged answer": "import os; os.write(1, b'\\x83\\xa4tier'); os._exit(0)",
    "an exit": "raise SystemExit(0)",
    "a class": "class Mine: print('run')",
    "what a decorator does": "@print\ndef mine(): pass",
    "what a default does": "@triton.jit\ndef mine(x=print('run')): pass",
    "what an annotation does": "@triton.jit\ndef mine(x: print('run')): pass",
    "Triton's interpreter": "triton.runtime.interpreter.interpreter_builder",
    "Python's own by Triton's": "tl.math.wraps(triton)(tl)",
}


@pytest.mark.parametrize("place", ["top", "body"])
@pytest.mark.parametrize("name", PYTHON)
def test_none_of_the_files_python_is_run_in_the_process_that_judges(
    name: str, place: str
) -> None:
    text = PYTHON[name]
    outcome = (
        sent(f"{text}\n")
        if place == "top"
        else sent(body=text.replace("\n", "\n    "), limits=Limits(processor_s=6))
    )
    if name == "no end" and place == "body":
        # that is a loop of the language, which is stopped
        assert outcome.status == "timeout" or ran(outcome).reports[0].stopped
        return
    result = ran(outcome)
    assert result.refused.startswith("Line ") and not result.memory
    assert not result.reports


def test_a_program_that_would_write_what_is_right_by_pythons_means_is_no_pass(
    lab: LoadedLab, case: DrawnCase, monkeypatch: pytest.MonkeyPatch
) -> None:
    """As if the parent had let it through: the process refuses it itself."""
    forged = (
        "# launch: add_relu[ceil_div(n, 1024)](x, y, out, n, BLOCK=1024)\n"
        + HEAD
        + KERNEL.format(
            body=(
                "if tl.constexpr(5) is not 5:\n        a = tl.math.wraps(triton)\n"
                "        a(tl)\n        tl.builtins.exec('import sys')"
            )
        )
    )
    right = lab.reference
    jobs: list[Struct] = []
    listen(monkeypatch, lambda job, _: jobs.append(job))
    monkeypatch.setattr(
        TritonFrontEnd, "program", lambda _self, source, compiled: forged
    )
    result = check(lab, right, [case])
    assert any(isinstance(job, InterpretTriton) for job in jobs)
    assert result.status == "failed" and result.right == 0
    assert "`is` asks for None only" in result.cases[0].message


def test_saying_that_all_is_well_does_not_make_wrong_results_right(
    lab: LoadedLab, case: DrawnCase, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The child may say what it likes of findings and counts, not of results."""
    forged: list[Outcome] = []

    def forge(_: Struct, outcome: Outcome) -> None:
        if isinstance(outcome.result, Interpreted):
            for run in outcome.result.runs:
                for report in run.reports:
                    report.findings.clear()
            forged.append(outcome)

    listen(monkeypatch, forge)
    for name in ("whole_blocks_only.py", "one_element_each_program.py"):
        result = check(lab, lab.wrong[name], [case])
        assert result.status == "failed", name
    # each is asked once more for the lines that it came from
    assert len(forged) == 4


def test_what_is_right_never_enters_the_process_of_the_kernel(
    lab: LoadedLab, case: DrawnCase, monkeypatch: pytest.MonkeyPatch
) -> None:
    seen: list[Struct] = []
    listen(monkeypatch, lambda job, _: seen.append(job))
    assert check(lab, lab.reference, [case]).status == "passed"
    (job,) = [job_seen for job_seen in seen if isinstance(job_seen, InterpretTriton)]
    memory = {buffer.name: buffer for buffer in job.runs[0].memory}
    assert memory["out"].data is None and memory["x"].data
    given = {name: np.frombuffer(memory[name].data or b"", np.float32) for name in "xy"}
    right = lab.cases.expected(given, dict(case.sizes))["out"].tobytes()
    held = [buffer.data or b"" for buffer in job.runs[0].memory]
    assert right not in b"".join(held)
