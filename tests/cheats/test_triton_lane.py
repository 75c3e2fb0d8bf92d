"""Triton files that try to cheat, break or outlast the lane without a GPU.

The words of `triton/source.py` are for honest mistakes; here what they refuse is sent
past them, straight into the jail, which is what must hold.
"""

from __future__ import annotations

import numpy as np
import pytest
from msgspec import Struct

from tests.cheats.between import listen
from warpbook_labs.cases import execution
from warpbook_labs.cases.sampling import DrawnCase, public_cases
from warpbook_labs.course.session import find
from warpbook_labs.engines.interpreter.jobs import Interpreted, InterpretTriton, Ran
from warpbook_labs.grading.grading import check
from warpbook_labs.lab.loaded import LoadedLab
from warpbook_labs.sandbox import parent
from warpbook_labs.sandbox.limits import Limits
from warpbook_labs.sandbox.parent import Outcome

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


def ran(outcome: Outcome) -> Ran:
    assert outcome.status == "done", outcome.message
    assert isinstance(outcome.result, Interpreted)
    return outcome.result.runs[0]


#: what a source says at its top, and what it must be refused with
ESCAPES = {
    "a file": "open('/etc/passwd').read()",
    "a folder": "import os; os.listdir('/')",
    "a program": "import subprocess; subprocess.run(['true'])",
    "a shell": "import os; os.system('true') and 1 / 0",
    "another process": "import os; os.fork()",
    "the network": "import socket; socket.socket()",
    "the lab's answers": "import catalogue.kernels.vector_add.cases",
    "a process to end": "import os, signal; os.kill(os.getppid(), signal.SIGKILL)",
    "a file descriptor": "import os; os.open('/proc/self/mem', os.O_RDWR)",
    "its own memory as a file": "open('/proc/self/mem', 'r+b')",
}


@pytest.mark.parametrize("name", ESCAPES)
def test_the_jail_holds_whatever_the_file_says(name: str) -> None:
    result = ran(sent(f"{ESCAPES[name]}\n"))
    assert result.refused.startswith("Line 3:") and not result.memory
    assert "root:" not in result.refused


BREAKS = {
    "an endless loop": ("", "while n > 0: pass", {"timeout"}),
    "an endless top": ("while True: pass\n", RIGHT, {"timeout"}),
    "all memory": (
        "held = bytearray(1 << 40)\n",
        RIGHT,
        {"out of memory"},
    ),
    "an early end": ("import os; os._exit(0)\n", RIGHT, {"crashed"}),
    "a crash": (
        "import ctypes; ctypes.string_at(0)\n",
        RIGHT,
        {"crashed"},
    ),
    "a forged answer": (
        "import os; os.write(1, b'\\x83\\xa4tier\\xaanamespaces'); os._exit(0)\n",
        RIGHT,
        {"crashed"},
    ),
    "a flood": (
        "import os\nfor _ in range(100000): os.write(1, b'x' * 65536)\n",
        RIGHT,
        {"too much output"},
    ),
}


@pytest.mark.parametrize("name", BREAKS)
def test_whatever_breaks_ends_in_a_clear_status(name: str) -> None:
    top, body, statuses = BREAKS[name]
    outcome = sent(top, body, Limits(processor_s=6))
    assert outcome.status in statuses, outcome.message
    assert outcome.result is None


def test_leaving_by_an_exception_or_exit_is_no_pass() -> None:
    for top in ("raise SystemExit(0)\n", "raise KeyboardInterrupt\n"):
        assert ran(sent(top)).refused


def test_memory_beside_the_buffers_is_watched_even_past_the_hooks() -> None:
    """Through the interpreter's own parts, as no honest file could."""
    body = "import ctypes; ctypes.memset(int(out.handle.data[0]) - 64, 0, 16)"
    result = ran(sent("", body))
    assert result.reports[0].findings[0].kind == "out of bounds"
    assert "out[-16]" in result.reports[0].findings[0].message


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
        result = check(lab, lab.wrong[name], [case], Limits())
        assert result.status == "failed", name
    # each is asked once more for the lines that it came from
    assert len(forged) == 4


def test_what_is_right_never_enters_the_process_of_the_kernel(
    lab: LoadedLab, case: DrawnCase, monkeypatch: pytest.MonkeyPatch
) -> None:
    seen: list[Struct] = []
    listen(monkeypatch, lambda job, _: seen.append(job))
    assert check(lab, lab.reference, [case], Limits()).status == "passed"
    (job,) = [job_seen for job_seen in seen if isinstance(job_seen, InterpretTriton)]
    memory = {buffer.name: buffer for buffer in job.runs[0].memory}
    assert memory["out"].data is None and memory["x"].data
    given = {name: np.frombuffer(memory[name].data or b"", np.float32) for name in "xy"}
    right = lab.cases.expected(given, dict(case.sizes))["out"].tobytes()
    held = [buffer.data or b"" for buffer in job.runs[0].memory]
    assert right not in b"".join(held)
