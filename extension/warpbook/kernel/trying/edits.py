"""An edited cell beside the cell before the edit, both on copies."""

from __future__ import annotations

import ast
import time
from collections.abc import (
    Callable,
    Collection,
    Container,
    Iterator,
    Mapping,
    Sequence,
)
from contextlib import AbstractContextManager, contextmanager, nullcontext
from typing import Any

import torch

from warpbook.kernel.trying.copies import PROBLEMS, Copies, copies, raised, trial_of
from warpbook.kernel.trying.forms import (
    Forms,
    Sight,
    in_any_order,
    incomparable,
    moved,
    unlike,
)
from warpbook.kernel.trying.graph import Captures
from warpbook.kernel.trying.limits import limited
from warpbook.kernel.trying.once import Sources
from warpbook.kernel.trying.outputs import (
    LAST_VALUE,
    Outputs,
    compare,
    round_otherwise,
)
from warpbook.kernel.trying.reach import Reached, reach
from warpbook.kernel.trying.refusals import Refused, StateLost
from warpbook.kernel.trying.saved_tensors import counted_writes
from warpbook.kernel.trying.source import Body, read_body
from warpbook.kernel.trying.turns import planned_pairs
from warpbook_profiler.advice.code.cell_code import bound_names, names_in
from warpbook_profiler.model.cell_profile import CellProfile
from warpbook_profiler.model.trials import OutputDifference, Promise, Trial, refused
from warpbook_profiler.techniques.registry import technique_of
from warpbook_profiler.techniques.technique import Applied

#: runs of an edited cell before its results are looked at, after its very first
_WARM_UPS = 2
#: a run of an edited cell takes so many times the cell's own time at most, and so much
#: more; one that is known to be right may compile
_MOST_TIMES, _EXTRA_S, _COMPILING_S = 20, 10.0, 600.0
#: runs of both in turns may take so long at least
_LEAST_S = 2.0
#: runs that tell how far rounding of its inputs changes what a cell computes
_ROUNDED = 3
_HALVES = {torch.float16, torch.bfloat16}
_LOOPS = (ast.For, ast.AsyncFor, ast.While)
_EDITED = "the edited cell"
_Around = Callable[[], AbstractContextManager[None]]


class _Bodies:
    """A cell, and what it needs to run once."""

    def __init__(self, shell: Any, sources: Sources) -> None:
        self._once = read_body(shell, sources.once) if sources.once else None
        self.cell = read_body(shell, sources.cell)

    @property
    def all(self) -> list[Body]:
        return [self.cell] if self._once is None else [self._once, self.cell]

    @property
    def once_names(self) -> set[str]:
        """Names that are bound once."""
        return set() if self._once is None else bound_names(self._once.tree)

    @property
    def compiles(self) -> bool:
        """Tell whether what runs once has torch compile something."""
        return self._once is not None and _has(self._once, "torch.compile")

    @property
    def captures(self) -> bool:
        """Tell whether the cell captures a CUDA graph."""
        return _has(self.cell, "torch.cuda.graph")

    def first_run(
        self, held: Copies, *failed: str, around: _Around = nullcontext
    ) -> _Side:
        """Run it for the first time.

        Args:
            held: what it runs on.
            failed: begins the reason, if it raises.
            around: what goes around each run.

        Raises:
            Refused: it does what can't be undone, or raises.
        """
        began_ns = time.perf_counter_ns()
        names: dict[str, Any] = {}
        if self._once is not None:
            _, _, names = held.first_run(self._once, around(), None, *failed)
        # a compiler that the cell calls would not compile below a scout
        cell, _, bound = held.first_run(self.cell, around(), names, *failed)
        # as when a cell is executed again: a function that it looks for is there
        names |= {
            name: value
            for name, value in bound.items()
            if name not in held.namespace and callable(value)
        }
        took_ns = time.perf_counter_ns() - began_ns
        binds = bound.keys() - names.keys()
        return _Side(
            held, lambda: cell.run(held.namespace), names, binds, took_ns, around
        )


class _Side:
    """One of two cells, of which all but the first run are alike."""

    def __init__(
        self,
        held: Copies,
        run: Callable[[], Any],
        names: Mapping[str, Any],
        binds: set[str],
        first_ns: int,
        around: _Around,
    ) -> None:
        self.run = run
        #: names that a run binds to something else than the person has there
        self.binds = binds
        self._around = around
        self.first_ns = first_ns
        self._held = held
        #: what is bound for each run
        self._names = names

    @contextmanager
    def __call__(self) -> Iterator[Applied]:
        """Apply it for one run."""
        self._held.namespace.update(self._names)
        with self._around():
            yield Applied(self.run)

    def look(self, names: Container[str] = ()) -> Outputs:
        """Run it and copy what it changes of the person's.

        Args:
            names: whose values are copied, even if they are what the person has there.
        """
        outputs = self._held.look(self, written=True, names=names)
        # what an edit binds beside the cell's names, or once before it, is its own
        known = {LAST_VALUE, *self._held.namespace} - self._names.keys()
        return {path: outputs[path] for path in outputs if _root(path) in known}

    def rounded(self, names: Collection[str], number: int) -> _Side:
        """Give the same side with the tensors that names lead to rounded otherwise."""

        def run() -> Any:
            round_otherwise(reach(names, self._held.namespace), number)
            return self.run()

        arguments = self._held, run, self._names, self.binds, self.first_ns
        return _Side(*arguments, self._around)

    def forms(self, sight: Sight) -> Forms:
        """Run it and look at what it leaves beside numbers."""
        return self._held.forms(self, sight)


def try_edit(
    shell: Any,
    sides: tuple[Sources, Sources],
    changes: Sequence[str],
    name: str,
    seconds: float,
    profile: CellProfile,
    promise: Promise | None = None,
    liberal: bool = False,
    ends: bool = False,
) -> tuple[Trial, tuple[int, ...]]:
    """Measure an edited cell; give the trial, and the times of its runs in ns.

    Args:
        shell: in whose namespace both run.
        sides: before and after the edit.
        changes: names of those that lead from the one to the other.
        name: what the trial is called.
        seconds: what it may take; a run that was begun is ended, unless the edited cell
            takes many times as long as the cell.
        profile: of the cell before the edit.
        promise: what the report says of it.
        liberal: nothing but the runs tells whether the edit is right.
        ends: whatever compiles has ended by then, too.

    Raises:
        StateLost: what the person had could not be put back.
    """
    until_s = time.monotonic() + seconds
    try:
        first, second = (_Bodies(shell, side) for side in sides)
        with copies(shell.user_ns, [*first.all, *second.all], profile) as held:
            before = first.first_run(held)
            began_s = time.monotonic()
            expected = before.look()
            ended_s = time.monotonic()
            # a cell that is too long is refused before it has run a dozen times
            planned_pairs(ended_s - began_s, until_s - ended_s)
            extra_s = _EXTRA_S if liberal or ends else _COMPILING_S
            if second.compiles and extra_s == _EXTRA_S:
                extra_s = max(extra_s, until_s - ended_s)
            most_s = extra_s + _MOST_TIMES * max(
                before.first_ns / 1e9, ended_s - began_s
            )
            captures = Captures() if second.captures else None
            after = second.first_run(
                held, _EDITED, around=lambda: _limited(most_s, captures)
            )

            between, gone = _between(first.cell.tree), set[str]()
            elsewhere = dict[str, str]()
            rounding = max(_rounding(changes), _of_half(held.reached))
            if liberal:
                statements = [part for one in second.all for part in one.tree.body]
                edited = ast.Module(statements, [])
                of_edit = bound_names(edited) - names_in(first.cell.tree)
                # what the cell reads alone may be a copy that is made once
                of_once = second.once_names - bound_names(first.cell.tree)
                is_result = _results(first.cell.tree, of_edit | of_once)
                sight = Sight(is_result, expected.keys(), of_edit)
                elsewhere = _look_closely(before, after, sight, _lay_out(changes))

            # one may bind a copy where the other binds what is there already
            both = bound_names(first.cell.tree) & bound_names(second.cell.tree)
            shared = (before.binds | after.binds) & both

            def looked() -> tuple[Outputs, Outputs]:
                left, outputs = before.look(shared), after.look(shared)
                for path in left.keys() - outputs.keys():
                    if _root(path) in between:
                        gone.add(_root(path))
                        del left[path]
                return left, outputs

            def results() -> OutputDifference:
                left, outputs = looked()
                if left.keys() != outputs.keys():
                    with counted_writes():
                        left, outputs = looked()
                # the first look tells how far unchanged runs differ
                three = left, outputs, expected, rounding
                difference = compare(*three)
                if not difference.differs or liberal:
                    return difference
                inputs = first.cell.names - bound_names(first.cell.tree)
                others = (before.rounded(inputs, at) for at in range(_ROUNDED))
                return compare(*three, [other.look(shared) for other in others])

            # short runs are measured however long it took to compile
            left_s = max(until_s - time.monotonic(), _LEAST_S)
            times, difference = held.compared(before, after, results, _WARM_UPS, left_s)
    except StateLost:
        raise
    except Refused as problem:
        return refused(name, str(problem)), ()
    except PROBLEMS as problem:
        return refused(name, f"with it the cell {raised(problem)}."), ()
    what = [f"It no longer binds {', '.join(sorted(gone))}."] if gone else []
    for device in sorted({*elsewhere.values()}):
        names = sorted(name for name in elsewhere if elsewhere[name] == device)
        what.append(f"It leaves {', '.join(names)} on {device}.")
    trial = trial_of(name, " ".join(what), times, difference, promise, after.first_ns)
    return trial, tuple(times.changed_ns)


@contextmanager
def _limited(most_s: float, captures: Captures | None) -> Iterator[None]:
    """Limit how long a run takes; a capture that fails is taken back."""
    with limited(most_s), captures.taken_back() if captures else nullcontext():
        yield


def _has(body: Body, function: str) -> bool:
    parts = (one for one in ast.walk(body.tree) if isinstance(one, ast.Attribute))
    return any(ast.unparse(one) == function for one in parts)


def _look_closely(
    before: _Side, after: _Side, sight: Sight, lays_out: bool
) -> dict[str, str]:
    """Compare all that runs leave beside numbers.

    Returns:
        Names that lead to tensors on another device, and which it is.

    Raises:
        Refused: it differs, does so from run to run, or can't be compared.
    """
    expected, again = before.forms(sight), before.forms(sight)
    is_steady = expected.floats == again.floats
    if not is_steady or unlike(expected, again, sight.is_result):
        raise Refused("the cell leaves something else each time that it runs.")
    edited = after.forms(sight)
    if lays_out:
        expected, edited = in_any_order(expected), in_any_order(edited)
    if words := incomparable(expected, edited, sight.is_result):
        raise Refused(f"the cell {words}.")
    if words := unlike(expected, edited, sight.is_result):
        raise Refused(f"with the edit {words}.")
    return {_root(path): device for path, device in moved(expected, edited)}


def run_on_copies(
    shell: Any,
    sources: Sources,
    profile: CellProfile,
    around: Callable[[Callable[[], Any]], Any],
) -> None:
    """Run a cell that is warm; then everything is put back.

    Args:
        shell: in whose namespace it runs.
        sources: of the cell.
        profile: of the cell, perhaps before an edit.
        around: calls what it is given in the last run, and gives what that gives.

    Raises:
        Refused: it can't be run on copies, or raised.
        StateLost: what the person had could not be put back.
    """
    try:
        bodies = _Bodies(shell, sources)
        with copies(shell.user_ns, bodies.all, profile) as held:
            side = bodies.first_run(held, _EDITED)
            held.run(side)
            run, side.run = side.run, lambda: around(run)
            held.run(side)
    except (Refused, StateLost):
        raise
    except PROBLEMS as problem:
        raise Refused(f"{_EDITED} {raised(problem)}.") from None


def _root(path: str) -> str:
    """Give the name that leads to a result."""
    return path if path == LAST_VALUE else path.partition("[")[0].partition(".")[0]


def _results(cell: ast.AST, of_edit: set[str]) -> Callable[[str], bool]:
    """Return whether a way leads to one of the cell's results."""
    own = of_edit | (_between(cell) - set(_bound_outside(cell)))
    return lambda path: _root(path) not in own


def _between(tree: ast.AST) -> set[str]:
    """Give the names that lead to the cell's results: it reads them itself.

    Those that only turns of a loop bind are gone without the loop.
    """
    loops = [node for node in ast.walk(tree) if isinstance(node, _LOOPS)]
    inside = {name for loop in loops for name in bound_names(loop)}
    read = {
        node.id
        for node in ast.walk(tree)
        if isinstance(node, ast.Name) and isinstance(node.ctx, ast.Load)
    }
    outside = set(_bound_outside(tree))
    return (inside - outside) | (outside & read)


def _bound_outside(node: ast.AST) -> Iterator[str]:
    for child in ast.iter_child_nodes(node):
        if not isinstance(child, _LOOPS):
            if isinstance(child, ast.Name) and isinstance(child.ctx, ast.Store):
                yield child.id
            yield from _bound_outside(child)


def _lay_out(changes: Sequence[str]) -> bool:
    """Tell whether changes leave tensors in another order of memory."""
    return any(of is not None and of.lays_out for of in map(technique_of, changes))


def _of_half(reached: Reached) -> float:
    """Give what a result of any dtype is off by where it is computed in half dtypes."""
    dtypes = {one.dtype for _, one in reached.tensors} & _HALVES
    return max((torch.finfo(dtype).eps for dtype in dtypes), default=0.0)


def _rounding(changes: Sequence[str]) -> float:
    """Give what results may differ by where changes compute in smaller dtypes."""
    techniques = ((name, technique_of(name)) for name in changes)
    return max(
        (of.roundings.get(name, 0.0) for name, of in techniques if of is not None),
        default=0.0,
    )
