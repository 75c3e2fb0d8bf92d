"""Settings for debugging that were left on, seen in the trace or in the source."""

from __future__ import annotations

import ast
import re
from collections.abc import Iterator

import numpy as np

from warpbook_monitors import units
from warpbook_monitors.units import duration_ns
from warpbook_profiler.advice.code.cell_code import CellCode, Constant
from warpbook_profiler.advice.code.source_edit import SourceEdit
from warpbook_profiler.advice.evidence import Evidence
from warpbook_profiler.advice.operators import BACKWARD, sorted_additions
from warpbook_profiler.advice.proposal import Proposal
from warpbook_profiler.advice.ways import Ways
from warpbook_profiler.checklist.answers import Judgement
from warpbook_profiler.checklist.facts import Facts, Question
from warpbook_profiler.events.columns import NONE, Int64s, distinct
from warpbook_profiler.techniques.technique import ChangeKind, Technique

_BLOCKING = "CUDA_LAUNCH_BLOCKING"
#: shorter kernels may be done before their launch returns
_LONG_NS = 20_000
_LEAST_LONG = 8
#: so many launches of long kernels return after their kernels
_BLOCKED_SHARE = 0.95
#: host's and GPU's clocks agree so well
_TOLERANCE_NS = 2_000
_ANOMALY = ("set_detect_anomaly", "detect_anomaly")
_CHECKS = ("aten::isnan", "aten::_is_any_true", "aten::any", "aten::item")
_LEAST_CHECKS = 3
CONVOLUTIONS = re.compile(r"aten::(cudnn_|miopen_)?convolution")
#: operators that have a slower way for a result that never varies
_VARYING = re.compile(
    r"aten::((cudnn_|miopen_)?convolution|_?index_put|index_add|scatter|cumsum|"
    r"max_pool|upsample|grid_sampl|embedding_bag|embedding_dense_backward)"
)
_LEAST_SHARE = 0.05


def debug_settings(evidence: Evidence) -> Iterator[Proposal]:
    """Propose to turn them off."""
    yield from _blocking(evidence)
    yield from _anomaly(evidence)
    yield from _algorithms(evidence)
    yield from _ranges(evidence)


def _blocking(evidence: Evidence) -> Iterator[Proposal]:
    calls, gpu = evidence.calls, evidence.gpu
    events = np.flatnonzero(evidence.is_kernel & (calls.launch != NONE))
    launch = calls.launch[events]
    waits = calls.api.end_ns[launch] >= gpu.end_ns[events] - _TOLERANCE_NS
    is_long = gpu.duration_ns[events] >= _LONG_NS
    if np.count_nonzero(is_long) < _LEAST_LONG:
        return
    if waits[is_long].mean() < _BLOCKED_SHARE:
        return
    blocked = distinct(launch[waits])
    ways = Ways(evidence)
    ways.drop_calls(blocked)
    ways.add_host(blocked, evidence.takes("launch"))
    time_ns = int(calls.api.duration_ns[blocked].sum())
    setting = (c for c in evidence.code.constants() if _BLOCKING in c.target)
    yield Proposal(
        name="no-launch-blocking",
        title=f"Unset {_BLOCKING} and restart the notebook's kernel.",
        evidence=(
            f"{len(blocked):,} launches return only when their kernel is done, which "
            f"takes {duration_ns(time_ns)} of the host's time: {_BLOCKING}=1 is set."
        ),
        ways=ways,
        line=next((constant.line for constant in setting), None),
    )


def _anomaly(evidence: Evidence) -> Iterator[Proposal]:
    operators = evidence.operators
    table = operators.table
    of_backward = np.array(
        [name.startswith(BACKWARD) for name in table.names] or [False]
    )[table.name]
    in_backward = np.append(of_backward, False)[operators.parent]
    is_check = operators.named("aten::isnan") & in_backward
    if np.count_nonzero(is_check) < _LEAST_CHECKS:
        return
    checks = np.flatnonzero(operators.named(*_CHECKS) & in_backward)
    ways = Ways(evidence)
    ways.drop_operators(checks)
    # a stack trace is noted for each operator of the forward pass, in Python's time
    outer = np.flatnonzero(operators.outermost & ~of_backward)
    for thread in distinct(table.track[outer]).tolist():
        mine = outer[table.track[outer] == thread]
        starts, ends = table.end_ns[mine[:-1]], table.start_ns[mine[1:]]
        ways.best.drop_host(int(thread), starts, np.maximum(starts, ends))
    launched = operators.launched_within(checks)
    line = evidence.code.first_line(*_ANOMALY)
    yield Proposal(
        name="no-anomaly-mode",
        title="Turn anomaly detection off.",
        evidence=(
            "Each operator of the backward pass is followed by a check for NaN, "
            f"{np.count_nonzero(is_check):,} times: {len(launched):,} kernels and "
            "copies, and the host waits for each result."
        ),
        ways=ways,
        is_bound=True,
        reason=(
            "Anomaly mode also records a stack trace for each operator of the forward "
            "pass; the trace does not show how long that takes."
        ),
        operator="aten::isnan",
        line=line,
        code=_without(evidence.code, *_ANOMALY),
    )


def _algorithms(evidence: Evidence) -> Iterator[Proposal]:
    settings = list(_settings(evidence.code))
    for setting in settings:
        yield from slower_algorithms(evidence, "nondeterministic", *setting)
    adds = sorted_additions(evidence.operators)
    events = evidence.operators.launched_within(adds)
    time_ns = evidence.time_ns(events)
    # that of convolutions has nothing to do with additions
    is_told = any(pattern is not CONVOLUTIONS for _, pattern in settings)
    if is_told or not len(adds) or evidence.share(time_ns) < _LEAST_SHARE:
        return
    name = evidence.operators.name(int(adds[0]))
    yield Proposal(
        name="nondeterministic",
        title="Try it without torch.use_deterministic_algorithms(True).",
        evidence=(
            f"{name} sorts its indices first, as it does where deterministic "
            f"algorithms are on, and takes {units.share(evidence.share(time_ns))} of "
            "the bare run."
        ),
        ways=None,
        events=events,
        reason="The trace does not show the time of the faster algorithms.",
        operator=name,
    )


def slower_algorithms(
    evidence: Evidence,
    name: str,
    constant: Constant,
    pattern: re.Pattern[str],
) -> Iterator[Proposal]:
    """Tell of a setting that chooses slower algorithms; only a trial shows by how much.

    Args:
        evidence: the window.
        name: of the change.
        constant: the setting, True or False.
        pattern: of the operators that it is about.
    """
    events = _events_of(evidence, pattern)
    time_ns = evidence.time_ns(events)
    if evidence.share(time_ns) < _LEAST_SHARE:
        return
    edit = SourceEdit(evidence.code)
    edit.replace(constant.node, str(not constant.value))
    what = "convolutions" if pattern is CONVOLUTIONS else "such operators"
    yield Proposal(
        name=name,
        title=f"Try it with {constant.target} set to {not constant.value}.",
        evidence=(
            f"Line {constant.line} excludes the faster algorithms, and {what} take "
            f"{units.share(evidence.share(time_ns))} of the bare run."
        ),
        ways=None,
        events=events,
        reason="The trace does not show the time of the faster algorithms.",
        line=constant.line,
        code=edit.source(),
    )


def _ranges(evidence: Evidence) -> Iterator[Proposal]:
    for call in evidence.code.calls("emit_nvtx", "emit_itt"):
        yield Proposal(
            name="no-ranges",
            title=f"Remove {call.name}(): it marks each operator for another tool.",
            evidence=f"Line {call.line} makes torch mark {_calls_text(evidence)}.",
            ways=None,
            reason="The trace does not separate the host's time for the marks.",
            line=call.line,
            code=_without(evidence.code, call.name),
        )
        return


def _calls_text(evidence: Evidence) -> str:
    return f"each of {len(evidence.operators.table):,} operators"


def _settings(code: CellCode) -> Iterator[tuple[Constant, re.Pattern[str]]]:
    for call in code.calls("use_deterministic_algorithms"):
        first = call.node.args[0] if call.node.args else None
        if isinstance(first, ast.Constant) and first.value is True:
            setting = ast.unparse(call.node.func)
            yield Constant(setting, True, call.line, first), _VARYING
    for constant in code.constants():
        if constant.target.endswith("cudnn.deterministic") and constant.value is True:
            yield constant, CONVOLUTIONS


def _without(code: CellCode, *names: str) -> str:
    """Write the cell without settings of these names, as managers or as calls."""
    edit, called = SourceEdit(code), {call.node for call in code.calls(*names)}
    for node in ast.walk(code.tree):
        match node:
            case ast.With(items=items):
                mine = [item for item in items if item.context_expr in called]
                for item in mine[:1]:
                    edit.unwrap(node, item)
            case ast.Expr(value=ast.Call(args=[ast.Constant(value=True) as on])) if (
                node.value in called
            ):
                edit.replace(on, "False")
    return edit.source()


def _events_of(evidence: Evidence, pattern: re.Pattern[str]) -> Int64s:
    operators = evidence.operators
    names = [name for name in operators.table.names if pattern.match(name)]
    chosen = np.flatnonzero(operators.named(*names))
    return operators.launched_within(chosen)


def _judge(facts: Facts) -> Judgement:
    advised = facts.advised(DEBUG_OFF)
    if advised is not None:
        return advised
    if facts.profile.bare is None:
        return facts.without_gain("This trace is not checked for such settings.")
    return Judgement("yes", "The trace shows no such setting.")


DEBUG_OFF = Question(
    name="debug-off",
    text="Are settings for debugging off (anomaly mode, launch blocking)?",
    judge=_judge,
    no_where=(
        "anomaly mode, launch blocking, deterministic algorithms or ranges for another "
        "tool are on"
    ),
)


TECHNIQUE = Technique(
    changes=(
        ChangeKind(
            names=("no-launch-blocking",),
            what="`CUDA_LAUNCH_BLOCKING` is on",
            time="predicted",
            answers=DEBUG_OFF,
        ),
        ChangeKind(
            names=("no-anomaly-mode",),
            what="anomaly mode is on",
            time="a bound",
            answers=DEBUG_OFF,
        ),
        ChangeKind(
            names=("nondeterministic", "no-ranges"),
            what="deterministic algorithms, or ranges for another tool, are on",
            time="known only after a trial",
            answers=DEBUG_OFF,
        ),
    ),
    rule=debug_settings,
    questions=(DEBUG_OFF,),
    untried="The cell or the process itself makes the setting.",
)
