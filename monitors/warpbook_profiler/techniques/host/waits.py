"""Results that the host reads in a loop, each of which empties the GPU's queue."""

from __future__ import annotations

import ast
from collections import Counter
from collections.abc import Iterator

import numpy as np

from warpbook_monitors import units
from warpbook_monitors.units import counted
from warpbook_profiler.advice.code.cell_code import Call, CellCode, walk
from warpbook_profiler.advice.code.read_code import gathered
from warpbook_profiler.advice.code.torch_code import is_number
from warpbook_profiler.advice.evidence import Evidence
from warpbook_profiler.advice.operators import Operators
from warpbook_profiler.advice.proposal import Proposal
from warpbook_profiler.advice.rewriting.host_copies import SHOWS, formatted
from warpbook_profiler.advice.rewriting.turns import counters, values_of
from warpbook_profiler.advice.ways import Ways
from warpbook_profiler.checklist.answers import Judgement
from warpbook_profiler.checklist.facts import Facts, Question, percent
from warpbook_profiler.events.columns import NONE, Int64s, distinct, rows_by
from warpbook_profiler.techniques.host.launches import DYNAMIC, READS
from warpbook_profiler.techniques.technique import BY_EDIT, ChangeKind, Technique

#: how an operator that reads one number or a few is called
_READS = ("aten::item", "aten::_local_scalar_dense", "aten::is_nonzero", "aten::equal")
#: a loop that ends by a condition may ask for it less often
_ENDS = (ast.Break, ast.While)
#: fewer are no loop
_LEAST_READS = 4
#: a larger copy is wanted on the host for something else
_MOST_BYTES = 4096
#: operators that choose what is read
_VIEWS = tuple(
    f"aten::{name}"
    for name in "select slice narrow view reshape unsqueeze squeeze unbind".split()
)
_METHODS = ("item", "tolist", "cpu")
#: those of Python; methods of these names only cast
_BUILTINS = ("float", "int", "bool")
_COPIES = ("aten::to", "aten::copy_", "aten::cpu", "aten::_to_copy")
#: with what the formatting of a tensor of floats begins
_BEGINS = ("aten::isfinite", "aten::ne", "aten::__and__", "aten::masked_select")
#: what follows, and what comes just before
_GOES_ON = frozenset(
    f"aten::{name}"
    for name in "abs to min max unbind ceil ne is_nonzero div gt lt item detach select "
    "reshape".split()
)
_BEFORE = frozenset(("aten::reshape", "aten::select"))
#: of the time, below which waits cost nothing to speak of
_LEAST_WAITING = 0.05


def waits(evidence: Evidence) -> Iterator[Proposal]:
    """Propose to keep what is read on the GPU until the loop is over."""
    if not formats_numbers(evidence):
        yield from reads_in_turns(evidence)


def formats_numbers(evidence: Evidence) -> bool:
    """Tell whether turns print numbers as parts of texts, and read no others."""
    code = evidence.code
    called = [CellCode(text) for text in evidence.run.called.values()]
    calls = (one.calls(*_METHODS, *_BUILTINS) for one in (code, *called))
    prints = [(code, call) for call in code.calls(*SHOWS, in_loop=True)]
    prints += [(one, call) for one in called for call in one.calls(*SHOWS)]
    if any(calls) or not prints:
        return False
    is_item = evidence.operators.named("aten::item")
    reads = np.setdiff1d(_reads(evidence), printed(evidence))
    if len(reads) < _LEAST_READS or not is_item[reads].all():
        return False
    return any(
        not _is_count(value, _counts(one.tree))
        for one, call in prints
        for part in ast.walk(call.node)
        for value in formatted(part) or ()
    )


def _counts(tree: ast.Module) -> set[str]:
    """Return the names by which loops count, and of numbers that the source has."""
    loops = (one for one in walk(tree) if isinstance(one, ast.For | ast.comprehension))
    counted = Counter(name for one in loops for name in counters(one.target, one.iter))
    taken = {one.arg for one in walk(tree) if isinstance(one, ast.arg)}
    return {
        name
        for name, values in values_of(tree).items()
        if values.count(None) == counted[name]
        and all(_is_count(one, {name}) for one in values if one is not None)
    } - taken


def _is_count(value: ast.expr, names: set[str]) -> bool:
    match value:
        case ast.Name(id=name):
            return name in names
        case ast.BinOp(left=left, right=right):
            return _is_count(left, names) and _is_count(right, names)
    return is_number(value)


def reads_in_turns(evidence: Evidence) -> Iterator[Proposal]:
    """Propose to keep what turns read, whatever it is read for."""
    operators, calls = evidence.operators, evidence.calls
    reads = _reads(evidence)
    if len(reads) < _LEAST_READS or _are_branches(evidence, reads):
        return
    ways = Ways(evidence)
    # one is left, for the result in the end
    removed = reads[:-1]
    table, api = operators.table, calls.api
    events = operators.launched_within(removed)
    waiting = evidence.waits_within(removed)
    if not len(waiting):
        return
    ways.drop(events)
    ways.stop_waiting(waiting)
    for thread in distinct(table.track[removed]).tolist():
        mine = removed[table.track[removed] == thread]
        ways.drop_host(int(thread), table.start_ns[mine], table.end_ns[mine])
    is_read = np.zeros(len(table), np.bool_)
    is_read[reads] = True
    views = operators.named(*_VIEWS)
    views[operators.outer_of(operators.launching)] = False
    # of all of it, read at once, turns take Python's numbers
    ways.drop_run_up(views | is_read, views | is_read, is_read)
    read = next(_read_in_loop(evidence.code), None)
    name = operators.name(int(removed[0]))
    text = read.text if read else f"{name.removeprefix('aten::')}()"
    waited_ns = int(api.duration_ns[waiting].sum())
    yield Proposal(
        name="read-once",
        title="Keep the results on the GPU, and read them once after the loop.",
        evidence=(
            f"The host reads a result {len(reads):,} times ({text}) and waits for the "
            f"GPU each time, {waited_ns / 1e6:.1f} ms of the profiled window."
        ),
        ways=ways,
        operator=name,
        line=read.line if read else evidence.line_at(int(table.start_ns[removed[0]])),
        code=gathered(evidence.code, read),
        is_shown_without_gain=True,
    )


def _are_branches(evidence: Evidence, reads: Int64s) -> bool:
    """Tell whether all are conditions of which each turn needs its own."""
    is_asked = evidence.operators.named("aten::is_nonzero")[reads].all()
    ends = any(isinstance(one, _ENDS) for one in ast.walk(evidence.code.tree))
    return bool(is_asked) and evidence.code.is_known and not ends


def printed(evidence: Evidence) -> Int64s:
    """Give the outermost operators of all that format a tensor."""
    groups = list(printed_groups(evidence.operators))
    return np.concatenate(groups) if groups else np.zeros(0, np.int64)


def printed_groups(operators: Operators) -> Iterator[Int64s]:
    """Give the outermost operators of each time that a tensor is formatted."""
    outer = np.flatnonzero(operators.outermost)
    begins = [operators.named(name) for name in _BEGINS]
    goes_on = operators.named(*_GOES_ON)
    for rows in rows_by(operators.table.track[outer]):
        mine = outer[rows]
        length = len(mine) - len(begins) + 1
        if length <= 0:
            continue
        first = np.ones(length, np.bool_)
        for place, fits in enumerate(begins):
            first &= fits[mine[place : place + length]]
        ends = np.append(np.flatnonzero(~goes_on[mine]), len(mine))
        for begin in np.flatnonzero(first).tolist():
            end = int(ends[np.searchsorted(ends, begin + len(begins))])
            is_reshaped = begin and operators.name(int(mine[begin - 1])) in _BEFORE
            yield mine[begin - bool(is_reshaped) : end]


def _read_in_loop(code: CellCode) -> Iterator[Call]:
    yield from (call for call in code.calls(*_METHODS, in_loop=True) if call.receiver)
    for call in code.calls(*_BUILTINS, in_loop=True):
        if not call.receiver and any(not is_number(part) for part in call.node.args):
            yield call


def _reads(evidence: Evidence) -> Int64s:
    """Give the outermost operators that read a little of the GPU's memory."""
    operators = evidence.operators
    named = operators.named(*_READS) & operators.outermost
    gpu = evidence.gpu
    small = (gpu.size_bytes != NONE) & (gpu.size_bytes <= _MOST_BYTES)
    to_host = np.array(["DtoH" in name for name in gpu.names] or [False])[gpu.name]
    outer = operators.outer[small & to_host]
    reading = np.zeros(len(operators.table) + 1, np.bool_)
    reading[outer] = True
    return np.flatnonzero(named & reading[:-1])


def _judge(facts: Facts) -> Judgement:
    advised = facts.advised(HOST_WAITS)
    if advised is not None:
        return advised
    waits, waiting = facts.metrics.synchronizations, facts.cause_share("sync-bound")
    if not waits:
        return Judgement("yes", "The host never waits for the GPU.")
    evidence = (
        f"The host waits for the GPU {counted(waits, 'time')}, which explains "
        f"{percent(waiting)} of the time."
    )
    if waiting < _LEAST_WAITING:
        return Judgement("yes", evidence)
    longest = max(
        facts.metrics.sync_points, key=lambda point: point.stall_ns, default=None
    )
    if longest is None:
        return facts.without_gain(evidence)
    place = longest.operator or longest.name
    stall = units.duration_ns(longest.stall_ns)
    return Judgement(
        "no",
        f"{evidence} The longest stalls are at {place}: {stall}.",
        f"{_instead_of(place)} Its gain is known only after a trial.",
    )


def _instead_of(place: str) -> str:
    """Say what to do about a place where the host waits."""
    if place in READS:
        return "Read results after the loop, or every so many steps."
    if place in (*DYNAMIC, "aten::index"):
        return (
            "It waits to learn how large its result is: compute on all elements, as "
            "torch.where does."
        )
    if place in _COPIES:
        return (
            "Copy more at once. With non_blocking=True, copies from or to pinned "
            "memory do not wait."
        )
    return "Check what waits there, and whether it has to wait each time."


HOST_WAITS = Question(
    name="host-waits",
    text="Does the host run ahead, without waits for the GPU?",
    judge=_judge,
    no_where="the code is limited by waits of the host for the GPU",
    lab="fix-the-trace",
)


TECHNIQUE = Technique(
    changes=(
        ChangeKind(
            names=("read-once",),
            what="`.item()` and the like in a loop, four times or more",
            time="predicted, also that it gains nothing",
            answers=HOST_WAITS,
            lab="read-the-trace",
        ),
    ),
    rule=waits,
    questions=(HOST_WAITS,),
    untried=BY_EDIT,
)
