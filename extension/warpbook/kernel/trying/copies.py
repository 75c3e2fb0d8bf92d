"""Cells that run on copies: what they reach is kept, and put back after each run."""

from __future__ import annotations

import contextlib
import os
import statistics
import sys
import threading
import time
from collections.abc import Callable, Container, Iterator, Mapping, Sequence
from contextlib import AbstractContextManager, nullcontext
from types import FrameType
from typing import Any, TypeVar

import torch

from warpbook.kernel.trying.forms import Forms, Sight, forms_of, logs, text_of
from warpbook.kernel.trying.outputs import Outputs, collect
from warpbook.kernel.trying.reach import Reached, reach
from warpbook.kernel.trying.refusals import NotIsolated, Refused, StateLost
from warpbook.kernel.trying.side_effects import check
from warpbook.kernel.trying.snapshot import Snapshot
from warpbook.kernel.trying.source import Body, RunnableBody
from warpbook.kernel.trying.turns import (
    Changed,
    Times,
    planned_pairs,
    run_once,
    take_turns,
)
from warpbook_profiler.capture.torch_gpus import used_devices
from warpbook_profiler.compare.paired_ratio import speed_ratio
from warpbook_profiler.model.cell_profile import CellProfile
from warpbook_profiler.model.trials import OutputDifference, Promise, Trial, measured
from warpbook_profiler.techniques.technique import Applied

#: what a cell may raise; an interrupt is for all trials
PROBLEMS = (Exception, SystemExit)

_Seen = TypeVar("_Seen")


class Copies:
    """A namespace whose state is put back after each run."""

    def __init__(
        self, namespace: dict[str, Any], reached: Reached, snapshot: Snapshot
    ) -> None:
        self.namespace = namespace
        self.reached = reached
        self._snapshot = snapshot

    def first_run(
        self,
        body: Body,
        around: AbstractContextManager[_Seen],
        names: Mapping[str, Any] | None = None,
        failed: str = "the cell does not run a second time: it",
    ) -> tuple[RunnableBody, _Seen, dict[str, Any]]:
        """Run a body, stopped at the first thing that can't be undone.

        Args:
            body: of a cell.
            around: watches the run; what it gives is returned beside the body.
            names: that are bound for it.
            failed: begins the reason, if the body raises.

        Returns:
            The body, what watched it, and all names that were bound.

        Raises:
            Refused: it was stopped, or raised.
        """
        runnable, noted = body.compiled(), list[_Seen]()

        def run() -> Any:
            self.namespace.update(names or {})
            with around as seen, guarded(body.filename):
                value = runnable.run(self.namespace)
            noted.append(seen)
            return value

        try:
            _, bound = run_once(
                self._snapshot,
                lambda: nullcontext(Applied(run)),
                lambda *_: self._snapshot.names.changed(),
            )
        except (Refused, StateLost):
            raise
        except PROBLEMS as problem:
            raise Refused(f"{failed} {raised(problem)}.") from None
        return runnable, noted[0], bound

    def run(self, side: Changed) -> None:
        run_once(self._snapshot, side)

    def look(
        self, side: Changed, written: bool = False, names: Container[str] = ()
    ) -> Outputs:
        """Run once and copy the results.

        Args:
            side: what runs.
            written: also those that it writes what they held before.
            names: whose values are results, even if they are bound as before.
        """
        _, outputs = run_once(
            self._snapshot,
            side,
            lambda last, _: collect(self._snapshot, last, written, names),
        )
        result: Outputs = outputs
        return result

    def forms(self, side: Changed, sight: Sight) -> Forms:
        """Run once and look at what is left beside numbers.

        Raises:
            Refused: there is too much of it.
        """
        with logs() as logged:
            _, seen = run_once(
                self._snapshot,
                side,
                lambda last, shown: forms_of(
                    self._snapshot, last, text_of(shown, logged), sight
                ),
            )
        forms: Forms = seen
        return forms

    def compared(
        self,
        unchanged: Changed,
        changed: Changed,
        results: Callable[[], OutputDifference],
        warm_ups: int,
        seconds: float,
    ) -> tuple[Times, OutputDifference]:
        """Run two sides in turns.

        Args:
            unchanged: one side.
            changed: the other.
            results: looks at those of the changed side, and compares them.
            warm_ups: runs of the changed side, in which things are compiled and chosen.
            seconds: what all of it may take.

        Raises:
            Refused: too few pairs fit the time.
        """
        deadline_s = time.monotonic() + seconds
        for _ in range(warm_ups - 1):
            self.run(changed)
        difference = results()
        # one more of each tells what a pair takes, with all that is put back
        since_s = time.monotonic()
        for side in (unchanged, changed):
            self.run(side)
        pair_s = time.monotonic() - since_s
        pairs = planned_pairs(pair_s, deadline_s - time.monotonic())
        times = take_turns(self._snapshot, unchanged, changed, pairs, deadline_s)
        return times, difference


@contextlib.contextmanager
def copies(
    namespace: dict[str, Any], bodies: Sequence[Body], profile: CellProfile
) -> Iterator[Copies]:
    """Keep all that cells can change; at the end it is as it was.

    Args:
        namespace: the person's.
        bodies: of the cells.
        profile: of one of them.

    Raises:
        Refused: a cell can't be run on copies.
        StateLost: what the person had could not be put back.
    """
    reserved_bytes = _reserved_bytes()
    try:
        for body in bodies:
            check(body, namespace)
        reached = reach(frozenset().union(*(body.names for body in bodies)), namespace)
        if reached.problems:
            path, reason = reached.problems[0]
            raise NotIsolated(f"works with {path}, which {reason}")
        snapshot = Snapshot(namespace, reached, _room_bytes(profile))
        try:
            yield Copies(namespace, reached, snapshot)
        finally:
            try:
                snapshot.restore()
            finally:
                lost = snapshot.differences()
                if lost:
                    raise StateLost(lost)
    finally:
        # what the copies took is the driver's again
        if _reserved_bytes() > reserved_bytes:
            torch.cuda.empty_cache()


def trial_of(
    name: str,
    what: str,
    times: Times,
    difference: OutputDifference,
    promise: Promise | None,
    first_ns: int | None = None,
) -> Trial:
    """Tell what a change gave; see `measured`."""
    return measured(
        name,
        what,
        speed_ratio(times.unchanged_ns, times.changed_ns),
        round(statistics.median(times.unchanged_ns)),
        round(statistics.median(times.changed_ns)),
        len(times.changed_ns),
        difference,
        promise,
        first_ns,
    )


def raised(problem: BaseException) -> str:
    """Say what a cell raised, to go after "it"."""
    said = str(problem).strip().partition("\n")[0]
    name = type(problem).__name__
    return f"raised {name}: {said:.200}" if said else f"raised {name}"


def _room_bytes(profile: CellProfile) -> int:
    """Give what a run needs on the GPU beside what lies there now."""
    if profile.peak_allocated_bytes is None:
        return 0
    allocated: int = sum(map(torch.cuda.memory_allocated, used_devices()))
    return max(profile.peak_allocated_bytes - allocated, 0)


def _reserved_bytes() -> int:
    total_bytes: int = sum(map(torch.cuda.memory_reserved, used_devices()))
    return total_bytes


_FILES = "writes files"
_PROCESS = "starts or signals processes"
_EVENTS = {
    **dict.fromkeys(
        (
            *("os.remove", "os.rename", "os.rmdir", "os.mkdir", "os.link"),
            *("os.symlink", "os.truncate", "os.chmod", "shutil.copyfile"),
            *("shutil.move", "shutil.rmtree", "sqlite3.connect"),
        ),
        _FILES,
    ),
    **dict.fromkeys(
        (
            *("subprocess.Popen", "os.system", "os.fork", "os.forkpty", "os.exec"),
            *("os.posix_spawn", "os.kill", "signal.pthread_kill"),
        ),
        _PROCESS,
    ),
    **dict.fromkeys(
        ("socket.connect", "socket.bind", "socket.sendto", "urllib.Request"),
        "talks over the network",
    ),
    "builtins.input": "asks for input",
    "builtins.breakpoint": "stops in a debugger",
    "_thread.start_new_thread": "starts threads",
}
_WRITING = os.O_WRONLY | os.O_RDWR | os.O_CREAT | os.O_TRUNC | os.O_APPEND
#: who compiles keeps what was compiled, and nothing else, in files and by processes
_COMPILERS = (
    *("torch._inductor", "torch._dynamo", "torch.utils.cpp_extension", "triton."),
    *("importlib", "numba.", "cupy.", "torch._functorch"),
)
#: loaders end their own workers
_LOADERS = ("torch.utils.data",)


class _Watching(threading.local):
    """The file of the cell that this thread runs on copies; None if it runs none."""

    filename: str | None = None


_watching = _Watching()
_is_added = False


@contextlib.contextmanager
def guarded(filename: str) -> Iterator[None]:
    """Raise `NotIsolated` where this thread does what can't be undone.

    Python tells each file that is opened, each process and each connection to its audit
    hooks before it happens, and a hook that raises prevents it. A hook can't be taken
    away again: it is added with the first `--try` of a kernel, and does nothing
    otherwise.

    Args:
        filename: of the cell's code, to tell the line.
    """
    global _is_added
    if not _is_added:
        sys.addaudithook(_heard)
        _is_added = True
    _watching.filename = filename
    try:
        yield
    finally:
        _watching.filename = None


def _heard(event: str, arguments: tuple[Any, ...]) -> None:
    filename = _watching.filename
    if filename is None:
        return
    reason = _EVENTS.get(event)
    if event == "open" and _is_for_writing(arguments):
        reason = "opens a file for writing"
    if reason is None:
        return
    line = None
    frame: FrameType | None = sys._getframe(1)
    while frame is not None:
        module = frame.f_globals.get("__name__") or ""
        if module.startswith(_COMPILERS) or module.startswith(_LOADERS):
            return
        if frame.f_code.co_filename == filename:
            # the outermost is the cell itself
            line = frame.f_lineno
        frame = frame.f_back
    raise NotIsolated(reason, line)


def _is_for_writing(arguments: tuple[Any, ...]) -> bool:
    path, mode, flags = arguments[:3]
    if path == os.devnull:
        return False
    if isinstance(mode, str):
        return bool(set(mode) & set("wax+"))
    return isinstance(flags, int) and bool(flags & _WRITING)
