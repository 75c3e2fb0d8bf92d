"""`%%gpuprof`: profiles a cell that runs as itself.

The first line becomes a comment before IPython compiles the cell; the profiler
starts in `pre_run_cell` and stops in `post_run_cell`. So the last expression is
shown, line numbers in tracebacks are right, `await` works, and an exception is
the cell's own. Only inside another magic or another cell does the ordinary cell
magic below run, which has to start a nested cell.
"""

# IPython's decorators have no types
# mypy: disallow-untyped-decorators=False
from __future__ import annotations

import importlib
import re
import sys
import uuid
from collections.abc import Callable
from dataclasses import dataclass
from keyword import iskeyword
from typing import Any

from IPython.core.error import UsageError
from IPython.core.magic import no_var_expand
from IPython.core.magic_arguments import argument, magic_arguments, parse_argstring
from IPython.display import display

from warpbook.kernel.cell import cell_status, cell_title
from warpbook.kernel.profile import Notice, Profile
from warpbook.kernel.server_link import LinkError, NoServer, ServerLink
from warpbook.kernel.where import kernel_id, notebook_path
from warpbook.protocol import PROTOCOL_VERSION, CellReport
from warpbook_monitors.trace.cell_profile import CellProfile
from warpbook_monitors.trace.errors import CaptureFailed, TraceError

_FIRST_LINE = re.compile(r"%%gpuprof(?=\s|$)(.*)")


@dataclass(frozen=True)
class Options:
    """What the person asked for on the first line."""

    quiet: bool
    output: str | None


@dataclass(frozen=True)
class Finished:
    """One run of a cell, profiled."""

    figures: CellProfile
    started_ms: float
    ended_ms: float


@dataclass(frozen=True)
class Session:
    """A cell that is being profiled."""

    options: Options
    title: str
    cell_id: str | None
    #: ends the capture and adds it up; it raises TraceError
    finish: Callable[[], Finished]


class CellProfiler:
    """Watches one IPython shell for cells that begin with `%%gpuprof`."""

    def __init__(self, shell: Any, link: ServerLink) -> None:
        """Take the shell; nothing is hooked yet."""
        self._shell = shell
        self._link = link
        #: the source of the outermost cell that runs now
        self._running: str | None = None
        self._session: Session | None = None
        self._is_nested = False

    def install(self) -> None:
        """Hook into the shell."""
        self._shell.input_transformers_cleanup.append(self.transform)
        self._shell.events.register("pre_run_cell", self.before_cell)
        self._shell.events.register("post_run_cell", self.after_cell)

    def remove(self) -> None:
        """Undo `install`."""
        self._shell.input_transformers_cleanup.remove(self.transform)
        self._shell.events.unregister("pre_run_cell", self.before_cell)
        self._shell.events.unregister("post_run_cell", self.after_cell)

    def transform(self, lines: list[str]) -> list[str]:
        """Turn the first line into a comment, so that the cell runs as itself."""
        if self._running is not None or _options_of(lines) is None:
            return lines
        for index, line in enumerate(lines[1:], start=1):
            if line.startswith("%%"):
                # only on the first line does IPython see another cell magic
                return lines[index:]
            if line.strip():
                break
        return [f"# {lines[0]}", *lines[1:]]

    def before_cell(self, info: Any) -> None:
        """Start to profile if the cell asks for it."""
        if self._running is not None:
            return
        self._running = info.raw_cell
        lines = info.raw_cell.lstrip().splitlines()
        options = _options_of(lines)
        if options is not None:
            cell_id = getattr(info, "cell_id", None)
            self._session = _begin(options, cell_title(lines[1:]), cell_id)

    def after_cell(self, result: Any) -> None:
        """Stop, show the report and hand it to the server."""
        # after an interrupt the result has an info of its own, so the source decides
        if result is not None and result.info.raw_cell != self._running:
            return
        self._running = None
        session, self._session = self._session, None
        if session is not None:
            self._end(session, result)

    @magic_arguments()
    @argument("-q", "--quiet", action="store_true", help="Show no report.")
    @argument(
        "-o", "--output", metavar="NAME", help="Keep the profile in this variable."
    )
    @no_var_expand
    def gpuprof(self, line: str, cell: str) -> None:
        """Profile the cell with torch.profiler and show what the GPU did.

        It must be the cell's first line. The dashboard gets the report too.
        """
        options = parse_options(line)
        if self._session is not None or self._is_nested:
            raise UsageError("The cell around this %%gpuprof is being profiled.")
        session = _begin(options, cell_title(cell.splitlines()), None)
        result = None
        self._is_nested = True
        try:
            result = self._shell.run_cell(cell, store_history=False)
        finally:
            self._is_nested = False
            self._end(session, result)
        result.raise_error()

    def _end(self, session: Session, result: Any) -> None:
        try:
            finished = session.finish()
        except TraceError as problem:
            # asked to be quiet about figures, not about their absence
            display(Notice(f"No profile of this cell: {problem}"))
            self._keep(session, None)
            return
        if result is not None and result.error_before_exec is not None:
            # a cell that did not compile did nothing
            return
        profile = Profile(finished.figures, session.title)
        self._keep(session, profile)
        if not session.options.quiet:
            display(profile)
        self._hand_in(
            CellReport(
                id=str(uuid.uuid4()),
                protocol=PROTOCOL_VERSION,
                kernel_id=kernel_id(self._shell),
                notebook=notebook_path(),
                cell_id=session.cell_id,
                execution_count=getattr(result, "execution_count", None),
                title=session.title,
                started_ms=finished.started_ms,
                ended_ms=finished.ended_ms,
                status=cell_status(result),
                profile=finished.figures,
            )
        )

    def _keep(self, session: Session, profile: Profile | None) -> None:
        if session.options.output is not None:
            self._shell.push({session.options.output: profile})

    def _hand_in(self, report: CellReport) -> None:
        try:
            self._link.post(report)
        except NoServer:
            # no dashboard; the report is in the notebook
            return
        except LinkError as problem:
            display(Notice(f"The dashboard did not get this report. {problem}"))


def parse_options(line: str) -> Options:
    """Read the options.

    Raises:
        UsageError: they make no sense, in words.
    """
    parsed = parse_argstring(CellProfiler.gpuprof, line)
    name = parsed.output
    if name is not None and (not name.isidentifier() or iskeyword(name)):
        raise UsageError(f"%%gpuprof -o wants the name of a variable, not {name!r}.")
    return Options(parsed.quiet, name)


def _options_of(lines: list[str]) -> Options | None:
    """Read the first line; None unless it is ours and makes sense.

    Options that make no sense are left to the ordinary magic, which says so.
    """
    first = _FIRST_LINE.match(lines[0]) if lines else None
    if first is None:
        return None
    try:
        return parse_options(first[1])
    except UsageError:
        return None


def _begin(options: Options, title: str, cell_id: str | None) -> Session:
    """Start to record; if that fails, the cell runs and the report says why."""
    try:
        finish = _start_capture()
    except TraceError as problem:
        finish = _raising(problem)
    return Session(options, title, cell_id, finish)


def _start_capture() -> Callable[[], Finished]:
    # both take long to import, and torch may not be there
    try:
        kineto = importlib.import_module("warpbook_monitors.trace.kineto")
    except (ImportError, OSError) as problem:
        raise CaptureFailed(
            f"%%gpuprof needs PyTorch in this kernel's environment ({sys.prefix}), "
            f"and it can't be imported ({problem}). Run %pip install torch, then "
            "restart the kernel."
        ) from None
    analysis = importlib.import_module("warpbook_monitors.trace.analysis")
    capture = kineto.Capture()
    capture.start()

    def finish() -> Finished:
        events, run = capture.stop()
        figures = analysis.analyse(events, run)
        return Finished(figures, run.start_ns / 1e6, run.end_ns / 1e6)

    return finish


def _raising(problem: TraceError) -> Callable[[], Finished]:
    def finish() -> Finished:
        raise problem

    return finish
