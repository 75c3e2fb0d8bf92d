"""Runs a Triton source without a GPU, in Triton's own interpreter; done in the jail.

None of the learner's Python is executed: a module is made of what the source says in
the language of `lab/triton/language.py`, and calls nothing but `Operations`.

The lines of a Triton source from which what is wrong came, once it was followed.

What is told of a line is what it did in the last program that came there: all programs
run the same Python.
"""

from __future__ import annotations

import contextlib
import importlib
import io
import os
import time
import traceback
import types
import warnings
from collections.abc import Sequence
from typing import Any

import numpy as np

from warpbook_labs.cases import execution
from warpbook_labs.cases.execution import Memory
from warpbook_labs.engines.interpreter.jobs import (
    Interpreted,
    InterpretTriton,
    LineQuestion,
    Origin,
    RunResult,
)
from warpbook_labs.engines.interpreter.ptx.text.errors import Unsupported
from warpbook_labs.engines.interpreter.triton.memory import (
    TritonMemory,
)
from warpbook_labs.engines.interpreter.triton.operations import Operations
from warpbook_labs.engines.interpreter.triton.patches import mend, mend_library
from warpbook_labs.engines.interpreter.triton.watching import (
    FILE,
    Watched,
    products_counted,
)
from warpbook_labs.errors import INSTALL_TRITON, BadSource, NotInstalled, SourceProblem
from warpbook_labs.lab.texts import at_line
from warpbook_labs.lab.triton.source import translated
from warpbook_labs.results.findings import Finding, Report
from warpbook_labs.sandbox.learner_code import TooLong, line_of, load_modules, within
from warpbook_labs.sandbox.lines.follower import MOST_LINES, Follower
from warpbook_labs.sandbox.lines.objects import in_order
from warpbook_labs.sandbox.progress import note_step
from warpbook_labs.sandbox.work import Status


def origin_of(
    question: LineQuestion,
    follower: Follower,
    held: Sequence[Memory],
    reports: Sequence[Report],
) -> Origin:
    """Give the lines that are asked for.

    Args:
        held: what buffers hold in the end, with the lines that wrote there.
    """
    line, has_written = question.line, True
    launches: tuple[int, ...] = ()
    if question.what == "finding":
        findings = [finding for report in reports for finding in report.findings]
        line = (findings[0].line or 0) if findings else 0
    elif question.what == "nothing":
        launches = tuple(range(len(reports)))
        line, has_written = _writer_beside(question, held)
    of_line = follower.of_line if question.what == "value" else follower.of_place
    nearest = in_order(follower.by_statements(of_line(line)))[:MOST_LINES]
    lines = tuple(other for other in nearest if other != line)
    return Origin(lines, line, launches, has_written)


def _writer_beside(question: LineQuestion, held: Sequence[Memory]) -> tuple[int, bool]:
    """Give the line that wrote the nearest element before, and whether it is another.

    The line is 0 where nobody has written any.
    """
    lines = next(
        (memory.writer_lines for memory in held if memory.name == question.buffer), b""
    )
    by_word = np.frombuffer(lines, "<u2")
    written = np.flatnonzero(by_word)
    if not len(written):
        return 0, True
    word = question.byte // 4
    at = int(written[max(int(np.searchsorted(written, word)) - 1, 0)])
    return int(by_word[at]), at != word


Job = InterpretTriton

#: of one launch
_MOST_PROGRAMS = 200_000
_MOST_PRINTED = 4_000
_MOST_MESSAGE = 400
#: whose errors are none of a source that has been compiled; assertions are
_BELOW = ("triton/runtime/interpreter.py", "triton/patches.py", "triton/watching.py")


class NoSource(SourceProblem):
    """The source can't be executed; the message is for its author."""


def load_triton(is_interpreted: bool) -> Any:
    """Load Triton, which decides at its start whether it interprets.

    Raises:
        NotInstalled: it is not installed.
    """
    os.environ["TRITON_INTERPRET"] = "1" if is_interpreted else "0"
    try:
        triton = importlib.import_module("triton")
    except (ImportError, OSError) as problem:
        raise NotInstalled(
            f"Triton can't be loaded ({problem}). Install it, on Linux: "
            f"{INSTALL_TRITON}"
        ) from None
    mend_library(importlib.import_module("triton.language.standard"), is_interpreted)
    return triton


def prepare() -> None:
    """Load all that a run needs, which no file can be opened for later."""
    load_modules()
    load_triton(is_interpreted=True)
    interpreter = importlib.import_module("triton.runtime.interpreter")
    standard = importlib.import_module("triton.language.standard")
    for function in list(vars(standard).values()):
        if isinstance(function, interpreter.InterpretedFunction):
            function.rewrite()
    mend(interpreter)
    np.seterr(all="ignore")
    warnings.simplefilter("ignore")
    run = execution.Run(
        (
            execution.Memory("x", 256, bytes(256), dtype="float32"),
            execution.Memory("y", 4, bytes(4), dtype="float32"),
        ),
        (
            execution.Launch(
                "rehearse",
                (2, 1, 1),
                (128, 1, 1),
                (execution.BufferArgument("x"), execution.BufferArgument("y")),
                constants=(("N", 64), ("num_warps", 4)),
            ),
        ),
    )
    (ran,) = do(InterpretTriton(_REHEARSAL, (run,))).runs
    if ran.refused:
        raise NotInstalled(f"This Triton can't be used here: {ran.refused}")


_REHEARSAL = """
import triton
import triton.language as tl

@triton.jit
def twice(x):
    return x + x

@triton.jit
def rehearse(x, y, N: tl.constexpr):
    i = tl.arange(0, N)
    v = tl.load(x + i, mask=i < 60, other=1.0)
    s = tl.sum(tl.where(v < 0, tl.exp(v), twice(v)), axis=0) + tl.max(v, axis=0)
    tl.atomic_add(y, s)
    tl.device_print("s", s)
    if tl.program_id(0) == 0:
        for k in range(0, tl.num_programs(0)):
            tl.store(x + i, v * s + tl.maximum(v, 0.0) + k, mask=i < N)
"""


def load_module(source: str) -> types.ModuleType:
    """Make the module of a source: what its language has, and none of its Python.

    Raises:
        NoSource: it says something else.
    """
    try:
        kernels, tree, _ = translated(source)
    except BadSource as problem:
        words = str(problem).removeprefix(f"Line {problem.line}: ")
        raise NoSource(words, problem.line) from None
    interpreter: Any = importlib.import_module("triton.runtime.interpreter")
    module = types.ModuleType("kernel")
    names = module.__dict__
    names.update(Operations(interpreter).by_name(), __builtins__={})
    exec(compile(tree, FILE, "exec"), names)
    for kernel in kernels.values():
        function = names[kernel.name]
        function.__annotations__ = dict.fromkeys(kernel.constants, "constexpr")
        ready = names[kernel.name] = interpreter.InterpretedFunction(function)
        # it would look for a text to rewrite, and this is made for it already
        ready.rewrite = lambda function=function: function
    # the interpreter looks among a kernel's names for what it has to prepare
    names[".tl"] = importlib.import_module("triton.language")
    return module


def words_and_line(problem: BaseException) -> tuple[str, int | None]:
    """Tell what went wrong, and the line of the source where that is known."""
    inner = problem
    while inner.__cause__ is not None:
        inner = inner.__cause__
    line = line_of(inner, FILE)
    words = str(inner).strip() or type(inner).__name__
    if isinstance(inner, SyntaxError):
        words, line = inner.msg, inner.lineno
    return words[:_MOST_MESSAGE], line


def do(job: InterpretTriton) -> Interpreted:
    """Run a source, each run with memory of its own."""
    runs = []
    for run in job.runs:
        runs.append(_run(job, run))
        note_step()
    return Interpreted(tuple(runs))


def _run(job: InterpretTriton, run: execution.Run) -> RunResult:
    left_s = job.processor_s - time.process_time()
    if left_s <= 0:
        words = "It was not run, since a case before it took too long."
        return RunResult((), (), words, "not run")
    memory = TritonMemory(run.memory)
    reports: list[Report] = []
    printed = _Printed()
    try:
        follower = None if job.question is None else Follower(job.source, FILE)
        watching = contextlib.nullcontext() if follower is None else follower.watching()
        with contextlib.redirect_stdout(printed), within(left_s), watching:
            module = load_module(job.source)
            for launch in run.launches:
                reports.append(Report())
                memory.begin(reports[-1], launch.grid)
                _launch(module, launch, run, memory)
                memory.look_at_zones()
            memory.look_at_inputs()
    except MemoryError:
        raise
    except NoSource as problem:
        return RunResult((), (), str(problem), "refused", line=problem.line)
    except TooLong as problem:
        reports = reports or [Report()]
        reports[-1].stopped = True
        reports[-1].add(_too_long(line_of(problem, FILE)))
    except BaseException as problem:  # noqa: BLE001 - whatever a kernel raises
        words, line = words_and_line(problem)
        status: Status = "unsupported" if _is_unsupported(problem) else "refused"
        return RunResult((), (), at_line(words, line), status, line=line)
    reports[-1].printed = printed.getvalue()
    held = memory.left()
    origin = None
    if job.question is not None and follower is not None:
        origin = origin_of(job.question, follower, held, reports)
    return RunResult(tuple(reports), held, origin=origin)


def _is_unsupported(problem: BaseException) -> bool:
    """Tell whether it is for something that is not known here.

    What Triton's compiler takes and its interpreter stumbles over is that, too.
    """
    while problem.__cause__ is not None and not isinstance(problem, Unsupported):
        problem = problem.__cause__
    if isinstance(problem, (Unsupported, AssertionError)):
        return isinstance(problem, Unsupported)
    *_, last = traceback.walk_tb(problem.__traceback__)
    return last[0].f_code.co_filename.endswith(_BELOW)


def _too_long(line: int | None) -> Finding:
    where = "" if line is None else f" It was at line {line} then."
    words = "It takes too long, and was stopped.{} Does one of its loops never end?"
    return Finding("too long", words.format(where), line)


class _Printed(io.StringIO):
    """What was printed, up to a bound."""

    def write(self, text: str) -> int:
        super().write(text[: max(_MOST_PRINTED - self.tell(), 0)])
        return len(text)


def _launch(
    module: types.ModuleType,
    launch: execution.Launch,
    run: execution.Run,
    memory: TritonMemory,
) -> None:
    x, y, z = launch.grid
    if min(launch.grid) < 1 or x * y * z > _MOST_PROGRAMS:
        raise NoSource(
            f"A grid of {x:,} x {y:,} x {z:,} programs can't be run here: "
            f"1 to {_MOST_PROGRAMS:,} can."
        )
    interpreter: Any = importlib.import_module("triton.runtime.interpreter")
    plain = interpreter._interpreter
    kernel = getattr(module, launch.kernel)
    arguments = [_argument(argument, run, memory) for argument in launch.arguments]
    constants = dict(launch.constants)
    builder = interpreter.interpreter_builder
    watched = interpreter._interpreter = Watched(plain, builder, memory)
    try:
        with products_counted(builder, memory.report), watched.with_scopes():
            kernel[launch.grid](*arguments, **constants)
    finally:
        interpreter._interpreter = plain


def _argument(
    argument: execution.Argument, run: execution.Run, memory: TritonMemory
) -> Any:
    if isinstance(argument, execution.BufferArgument):
        given = next(buffer for buffer in run.memory if buffer.name == argument.name)
        return _Buffer(memory.address(argument.name), given.dtype)
    if isinstance(argument, execution.IntegerArgument | execution.FloatArgument):
        return argument.value
    return np.frombuffer(argument.data, argument.dtype)[0].item()


class _Buffer:
    """What Triton asks of a tensor: where it lies, and the type of its elements."""

    def __init__(self, address: int, dtype: str) -> None:
        self._address, self.dtype = address, dtype

    def data_ptr(self) -> int:
        return self._address

    # the interpreter copies what lies on a GPU to the host and back; this is there

    def untyped_storage(self) -> _Buffer:
        return self

    def cpu(self) -> _Buffer:
        return self

    def new_empty(self, *_: Any, **__: Any) -> _Buffer:
        return self

    def set_(self, *_: Any) -> None:
        return None

    def copy_(self, _: Any) -> None:
        return None

    def storage_offset(self) -> int:
        return 0

    def size(self) -> tuple[int, ...]:
        return ()

    def stride(self) -> tuple[int, ...]:
        return ()
