"""`%%gpuprof`: profiles a cell that runs as itself.

The first line becomes a comment before IPython compiles the cell; the profiler
starts in `pre_run_cell` and stops in `post_run_cell`. So the last expression is
shown, line numbers in tracebacks are right, `await` works, and an exception is
the cell's own. Repeats are a loop around a copy of the cell's statements, before
them. Only inside another magic or another cell does the ordinary cell magic below
run, which has to start a nested cell.
"""

# IPython's decorators have no types
# mypy: disallow-untyped-decorators=False
from __future__ import annotations

import ast
import builtins
import contextlib
import functools
import re
from collections import OrderedDict
from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any

import msgspec
from IPython.core.error import InputRejected, UsageError
from IPython.core.magic import needs_local_scope, no_var_expand
from IPython.core.magic_arguments import magic_arguments, parse_argstring

from warpbook.kernel.link.server_link import ServerLink
from warpbook.kernel.profile.delivery import Delivery, Ran
from warpbook.kernel.profile.gpuprof_options import Options, arguments, checked
from warpbook.kernel.profile.gpuprof_source import (
    joined,
    marked,
    repeated,
    run_line,
    split_line,
    with_values_apart,
)
from warpbook.kernel.runs.bare_times import CellTimes
from warpbook.kernel.runs.cell import (
    cell_status,
    did_nothing,
    prompt_number,
    report_title,
)
from warpbook.kernel.runs.code_span import CodeSpan
from warpbook.kernel.runs.profile import Profile
from warpbook.kernel.runs.runs import FastestRun, Runs
from warpbook_profiler.model.cell_profile import CellProfile
from warpbook_profiler.model.trials import Trial

if TYPE_CHECKING:
    from warpbook.kernel.live.live_cell import LiveCell

_FIRST_LINE = re.compile(r"%%gpuprof(?=\s|$)(.*)")
#: by this name the loop around a repeated cell finds its runs, while it runs
_RUNS_NAME = "__warpbook_runs__"
#: the newest profiles of so many cells are kept, to compare the next run with
_MOST_PREVIOUS = 20


@dataclass
class Session:
    """A cell that is being profiled."""

    options: Options
    title: str
    cell_id: str | None
    #: tells the cell's next run; a frontend that gives no ids runs the same source
    key: str
    runs: Runs | LiveCell
    #: the cell's statements are yet to be marked, or to be put in a loop
    is_unprepared: bool
    #: without the magic; its lines keep their numbers
    code: str = ""
    #: it was started by a magic within a cell, which ends it too
    is_nested: bool = False
    #: undoes what was hooked for this session
    hooks: contextlib.ExitStack = field(default_factory=contextlib.ExitStack)


class CellProfiler:
    """Watches one IPython shell for cells that begin with `%%gpuprof`."""

    def __init__(
        self,
        shell: Any,
        link: ServerLink,
        span: CodeSpan,
        times: CellTimes | None = None,
    ) -> None:
        """Take the shell, and what notes when its code runs; nothing is hooked yet."""
        self._shell = shell
        self._span = span
        self._times = times
        self._delivery = Delivery(shell, link)
        #: the source of the outermost cell that runs now
        self._running: str | None = None
        self._session: Session | None = None
        #: while it was about to begin
        self._is_interrupted = False
        #: id and source of a cell whose next run is profiled
        self._wanted: tuple[str | None, str] | None = None
        #: by the cell's key
        self._previous: OrderedDict[str, Profile] = OrderedDict()
        #: of the cell that was profiled last; None if that gave none, or live windows
        self.newest: Profile | None = None

    def profile_next(self, cell_id: str | None, source: str) -> None:
        """Profile the next run of a cell as if `%%gpuprof` were on its first line."""
        self._wanted = (cell_id, source)

    def install(self) -> None:
        self._shell.input_transformers_cleanup.append(self.transform)
        self._shell.ast_transformers.append(self)
        self._shell.events.register("pre_run_cell", self.before_cell)
        self._shell.events.register("post_run_cell", self.after_cell)

    def remove(self) -> None:
        self._shell.input_transformers_cleanup.remove(self.transform)
        with contextlib.suppress(ValueError):
            # IPython itself drops one that raised
            self._shell.ast_transformers.remove(self)
        self._shell.events.unregister("pre_run_cell", self.before_cell)
        self._shell.events.unregister("post_run_cell", self.after_cell)

    def transform(self, lines: list[str]) -> list[str]:
        """Turn the first line into a comment, so that the cell runs as itself."""
        if self._running is not None or self._options_of(lines) is None:
            return lines
        for index, line in enumerate(lines[1:], start=1):
            if line.startswith("%%"):
                # only on the first line does IPython see another cell magic
                return lines[index:]
            if line.strip():
                break
        return [f"# {lines[0]}", *lines[1:]]

    def visit(self, tree: ast.Module) -> ast.Module:
        """Mark a cell's lines, and put a cell in its loop; IPython calls this."""
        if self._is_interrupted:
            raise InputRejected("Interrupted before the cell began.")
        session = self._session
        if session is None or not session.is_unprepared:
            return tree
        session.is_unprepared = False
        runs, options = session.runs, session.options
        if runs.count == 1 and not options.lines:
            if isinstance(runs, Runs):
                self._span.when_code_begins(runs.code_begins)
            return tree
        setattr(builtins, _RUNS_NAME, runs)
        if options.lines:
            tree = marked(tree, f"{_RUNS_NAME}.at")
        if self._shell.ast_node_interactivity != "all":
            tree = joined(tree)
        if runs.count == 1:
            runs.again()
            return tree
        return repeated(tree, f"{_RUNS_NAME}.again()")

    def before_cell(self, info: Any) -> None:
        """Start to profile if the cell asks for it."""
        if self._running is not None:
            return
        self._running = info.raw_cell
        lines = info.raw_cell.lstrip().splitlines()
        options = self._options_of(lines)
        cell_id = getattr(info, "cell_id", None)
        if options is None and self._is_wanted(cell_id, info.raw_cell):
            self._wanted = None
            # the line that it would have
            options, lines = Options(), ["%%gpuprof", *lines]
        if options is not None:
            try:
                self._session = self._begin(options, lines, cell_id)
            except KeyboardInterrupt:
                # IPython would run the cell all the same
                self._is_interrupted = True

    def _is_wanted(self, cell_id: str | None, source: str) -> bool:
        if self._wanted is None:
            return False
        wanted_id, wanted_source = self._wanted
        if cell_id is not None and wanted_id is not None:
            return cell_id == wanted_id
        return source == wanted_source

    def after_cell(self, result: Any) -> None:
        """Stop, show the report and hand it to the server."""
        # after an interrupt the result has an info of its own, so the source decides
        if result is not None and result.info.raw_cell != self._running:
            return
        self._running = None
        self._is_interrupted = False
        if self._session is not None and not self._session.is_nested:
            # the report is shown; of a hook's interrupt IPython shows the traceback
            with contextlib.suppress(KeyboardInterrupt):
                self._end(self._session, result)

    @magic_arguments()
    @arguments
    @no_var_expand
    @needs_local_scope
    def gpuprof(
        self,
        line: str,
        cell: str | None = None,
        local_ns: Mapping[str, Any] | None = None,
    ) -> Any:
        """Profile with torch.profiler and show what the GPU did.

        `%%gpuprof` as a cell's first line profiles the cell, `%gpuprof f(x)` what
        follows it. The dashboard gets the report too.
        """
        options_line, code = (line, "") if cell is not None else self._split(line)
        options = self._parse(options_line)
        if self._session is not None:
            raise UsageError("The cell around this %gpuprof is being profiled.")
        if cell is None:
            return self._run_line(options, code, self._within(local_ns))
        lines = cell.splitlines()
        session = self._session = self._begin(options, lines)
        session.is_nested = True
        result = None
        try:
            result = self._shell.run_cell(cell, store_history=False)
        finally:
            self._end(session, result)
        result.raise_error()
        return None

    def _within(self, local_ns: Mapping[str, Any] | None) -> dict[str, Any] | None:
        """Give what code in a function can see; None outside of one."""
        if local_ns is None or local_ns is self._shell.user_ns:
            return None
        return {**self._shell.user_global_ns, **local_ns}

    def _run_line(
        self, options: Options, code: str, names: dict[str, Any] | None
    ) -> Any:
        if not code:
            raise UsageError("%gpuprof wants code after its options: %gpuprof f(x)")
        once = run_line(self._shell, code, names)
        if options.lines:
            raise UsageError("--lines is for the lines of a cell: use %%gpuprof.")
        if options.applied is not None:
            raise UsageError("--apply edits a cell: use %%gpuprof.")
        session = self._session = self._begin(options, [code])
        session.is_unprepared = False
        session.is_nested = True
        status = cell_status(None)
        try:
            while session.runs.count > 1 and session.runs.again():
                once()
            value = once()
            status = "ok"
        except Exception:
            status = "error"
            raise
        finally:
            self._session = None
            session.hooks.close()
            ran = Ran(session.title, status)
            self._delivery.deliver(
                session.runs, options, ran, on_copies=self._on_copies(session)
            )
        return value

    def _end(self, session: Session, result: Any) -> None:
        self._session = None
        session.hooks.close()
        builtins.__dict__.pop(_RUNS_NAME, None)
        if did_nothing(result):
            session.runs.abandon()
            return
        if isinstance(session.runs, Runs) and self._span.end is not None:
            session.runs.code_ended(self._span.end.unix_ns)
        outer_number = prompt_number(self._shell) if session.is_nested else None
        ran = Ran(
            session.title,
            cell_status(result),
            session.cell_id,
            outer_number or getattr(result, "execution_count", None),
            session.code,
        )
        previous = self._previous.get(session.key)
        profile = self._delivery.deliver(
            session.runs, session.options, ran, previous, self._on_copies(session)
        )
        is_whole = isinstance(session.runs, Runs)
        self.newest = profile if isinstance(profile, Profile) else None
        if isinstance(profile, Profile) and ran.status == "ok" and is_whole:
            self._previous[session.key] = profile
            self._previous.move_to_end(session.key)
            while len(self._previous) > _MOST_PREVIOUS:
                self._previous.popitem(last=False)

    def _on_copies(
        self, session: Session
    ) -> Callable[[FastestRun], CellProfile] | None:
        """Give what adds trials and stalls to a report; None if nobody asks for any."""
        options, code, shell = session.options, session.code, self._shell
        if options.tried is options.applied is options.stalls is None:
            return None

        def on_copies(finished: FastestRun) -> CellProfile:
            # these need torch
            from warpbook.kernel.profile import applying, cell_stalls
            from warpbook.kernel.trying import trials as trying

            profile, seconds = finished.figures, options.try_seconds
            if options.stalls is not None:
                stalls = cell_stalls.cell_stalls(shell, code, options.stalls, profile)
                profile = msgspec.structs.replace(profile, stalls=stalls)
            if options.applied is not None:
                profile = applying.apply_changes(
                    shell, code, options.applied, seconds, profile, finished.recorded
                )
            elif options.tried is not None:
                trials: tuple[Trial, ...] = trying.try_changes(
                    shell, code, options.tried, seconds, profile
                )
                profile = msgspec.structs.replace(profile, trials=trials)
            return profile

        return on_copies

    def _begin(
        self, options: Options, source: list[str], cell_id: str | None = None
    ) -> Session:
        """Start to record; if that fails, the code runs and the report says why."""
        key = cell_id or "\n".join(source[1:])
        title = options.output or report_title(source)
        # a cell without a statement ends no code
        self._span.end = None
        timed = None
        if self._times is not None:
            self._times.profiled()
            timed = self._times.of("\n".join(source))
        if options.live:
            live = self._delivery.begin_live(options, title, cell_id)
            session = Session(options, title, cell_id, key, live, is_unprepared=False)
            session.hooks.enter_context(self._noting_tracebacks(live))
            return session
        runs = Runs(
            options.warm_ups,
            options.repeats,
            options.memory,
            source,
            options.save,
            options.shapes,
            timed,
            self._shell.user_ns,
        )
        # else it starts later: to prepare the source is no part of what it takes
        if runs.count == 1 and not options.lines:
            runs.again()
        session = Session(options, title, cell_id, key, runs, is_unprepared=True)
        session.code = "\n".join(source)
        session.hooks.enter_context(self._noting_tracebacks(runs))
        return session

    @contextlib.contextmanager
    def _noting_tracebacks(self, runs: Runs | LiveCell) -> Iterator[None]:
        """Note when IPython begins to write of a failure, before any hook is called."""
        show = self._shell.showtraceback

        @functools.wraps(show)
        def noting(*args: Any, **kwargs: Any) -> Any:
            runs.shows_traceback()
            return show(*args, **kwargs)

        self._shell.showtraceback = noting
        yield
        # the cell may have put its own in place
        if self._shell.showtraceback is noting:
            self._shell.showtraceback = show

    def _parse(self, line: str) -> Options:
        options = parse_argstring(CellProfiler.gpuprof, with_values_apart(line))
        return checked(options, self._shell.user_ns)

    @staticmethod
    def _split(line: str) -> tuple[str, str]:
        actions = CellProfiler.gpuprof.parser._actions
        return split_line(line, actions)

    def _options_of(self, lines: list[str]) -> Options | None:
        """Read the first line; None unless it is ours and makes sense.

        Options that make no sense are left to the ordinary magic, which says so.
        """
        first = _FIRST_LINE.match(lines[0]) if lines else None
        if first is None:
            return None
        try:
            return self._parse(first[1])
        except UsageError:
            return None
