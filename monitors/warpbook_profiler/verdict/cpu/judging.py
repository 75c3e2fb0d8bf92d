"""The verdict of a run without GPU work: one cause and one change, or none."""

from __future__ import annotations

import dataclasses
from collections.abc import Iterator, Sequence

from msgspec.structs import replace

from warpbook_monitors import units
from warpbook_profiler.advice.code.cell_code import CellCode
from warpbook_profiler.advice.code.source_edit import SourceEdit, changed_lines
from warpbook_profiler.advice.words import advised
from warpbook_profiler.events.columns import Columns
from warpbook_profiler.events.run import Run
from warpbook_profiler.model.bare_words import longer
from warpbook_profiler.model.cause import Cause
from warpbook_profiler.model.change import Change
from warpbook_profiler.model.figures import CellVerdict, Finding
from warpbook_profiler.model.use import CpuTime
from warpbook_profiler.techniques.host.loading import with_workers
from warpbook_profiler.verdict.cpu.causes import causes
from warpbook_profiler.verdict.cpu.split import Split, split
from warpbook_profiler.verdict.leading_cause import (
    in_words,
    leading,
    shares_by_kind,
    with_rounded_shares,
)

#: a cause that explains less of the window is not told, and of less no change
_LEAST_SHARE, _LEAST_CHANGE_SHARE = 0.02, 0.2
#: the profiler's part of what is left, at most: see `bare.tax`
_OPERATOR_NS, _KEPT_SHARE = 12_000, 0.35
#: in line for a core for so much of the window is told
_QUEUED_SHARE = 0.1
#: the profiler's start and stop take 2 to 10 ms around a cell, and a machine in use
#: takes the core away for some ms: a shorter window, with operators or without, tells
#: of these
_SHORT_NS, _SHORT_WITHOUT_NS = 1_000_000, 5_000_000
#: a measured time is of something else if it is so much longer
_NOT_LONGER = 1.1
#: a bound below this part of the whole is no promise
_NOTHING_SHARE = 0.02
_NO_GPU_WORK = "Nothing ran on the GPU. "


@dataclasses.dataclass(frozen=True)
class JudgedCpu:
    """What is concluded of a run without GPU work."""

    time: CpuTime
    findings: tuple[Finding, ...]
    verdict: CellVerdict
    changes: tuple[Change, ...]
    warnings: tuple[str, ...]


def judge_cpu(events: Columns, run: Run) -> JudgedCpu:
    """Say what held a run back that put no work on a GPU.

    Args:
        events: of the trace.
        run: its window, and what was measured without the profiler.
    """
    parts = split(events, run)
    time = parts.time
    is_measured = _is_measured(time, run)
    # no cause and no change beside "too little to tell"
    is_long = time.judged_ns > 0 and time.window_ns >= (
        _SHORT_NS if time.calls or time.loading_ns else _SHORT_WITHOUT_NS
    )
    every = causes(run, parts) if is_long else ()
    large = [one for one in every if one.explains_ns >= _LEAST_SHARE * time.judged_ns]
    large.sort(key=lambda cause: -cause.explains_ns)
    bounds = [_bound_ns(cause, parts, run) for cause in large]
    findings = with_rounded_shares(
        Finding(
            cause.kind,
            cause.explains_ns,
            cause.explains_ns / time.judged_ns,
            cause.evidence,
            cause.title,
            _told_ns(bound_ns, time, run),
            part=cause.name,
        )
        for cause, bound_ns in zip(large, bounds, strict=True)
    )
    large = [
        dataclasses.replace(cause, evidence=finding.evidence)
        for cause, finding in zip(large, findings, strict=True)
    ]
    changes = tuple(
        _change(cause, bound_ns, time, run)
        for cause, bound_ns in zip(large, bounds, strict=True)
        if cause.explains_ns >= _LEAST_CHANGE_SHARE * time.judged_ns
    )
    verdict = _verdict(findings, large, changes, time)
    if run.gpu_name is not None:
        verdict = replace(verdict, sentence=_NO_GPU_WORK + verdict.sentence)
    warnings = tuple(_warnings(time))
    if run.bare is not None and not is_measured:
        warnings += (longer(run.bare),)
    time = replace(time, bare=run.bare if is_measured else None)
    return JudgedCpu(time, findings, verdict, changes, warnings)


def _verdict(
    findings: tuple[Finding, ...],
    large: Sequence[Cause],
    changes: tuple[Change, ...],
    time: CpuTime,
) -> CellVerdict:
    if not findings:
        return CellVerdict(
            "unknown",
            f"Nothing to judge: {units.duration_ns(time.window_ns)}, less than the "
            "profiler's own cost.",
        )
    kind = leading(shares_by_kind(findings, time.judged_ns))
    if kind == "mixed":
        return CellVerdict(
            "mixed",
            f"No single cause leads: {in_words(shares_by_kind(findings))}. "
            + " ".join(finding.evidence for finding in findings[:2]),
            parts=tuple(finding.part for finding in findings[:2]),
        )
    cause = next(cause for cause in large if cause.kind == kind)
    names = [change.name for change in changes]
    at = names.index(cause.name) if cause.name in names else None
    advice = cause.title
    if at is not None:
        advice = advised(changes[at], cause.evidence)
    return CellVerdict(kind, f"{cause.evidence} {advice}", advice, (cause.name,), at)


def _bound_ns(cause: Cause, parts: Split, run: Run) -> int | None:
    """Give what a change can't fall below: the rest, less the profiler's part."""
    if cause.left_ns is None:
        return None
    time = parts.time
    before_ns = round(_before_ns(time, run))
    if cause.kind in ("overhead-bound", "python-bound"):
        # other code takes the place of the whole loop: only other work is left
        kept_ns = time.loading_ns + time.operators_ns + time.communication_ns
        return min(kept_ns + (time.waiting_ns or 0), before_ns)
    rest_ns = max(time.judged_ns - cause.explains_ns, 0)
    tax_ns = _OPERATOR_NS * time.calls
    kept_ns = max(rest_ns - tax_ns, round(_KEPT_SHARE * rest_ns))
    if cause.name == "workers":
        # the workers load while the program goes on
        return min(max(kept_ns, cause.left_ns), before_ns)
    return min(kept_ns + cause.left_ns, before_ns)


def _change(cause: Cause, bound_ns: int | None, time: CpuTime, run: Run) -> Change:
    told_ns = _told_ns(bound_ns, time, run)
    code = _edited(cause, CellCode(run.source))
    sentence = " ".join(filter(None, (_promise(bound_ns, time, run), cause.reason)))
    return Change(
        name=cause.name,
        title=cause.title,
        evidence=cause.evidence,
        basis="unknown" if told_ns is None else "not below",
        time_ns=None,
        low_ns=told_ns,
        high_ns=None,
        speed_low=None,
        speed_high=None,
        reason=cause.reason,
        sentence=sentence,
        operator=cause.operator,
        line=cause.line,
        code=code,
        diff=changed_lines(run.source, code),
        parts=(cause.name,),
    )


def _edited(cause: Cause, code: CellCode) -> str:
    if cause.workers:
        return with_workers(code, cause.workers)
    edit = SourceEdit(code)
    if cause.setting:
        edit.at_start(f"{edit.torch}.{cause.setting}")
    return edit.source()


def _told_ns(bound_ns: int | None, time: CpuTime, run: Run) -> int | None:
    """Leave a bound out that is next to nothing."""
    if bound_ns is None or bound_ns < _NOTHING_SHARE * _before_ns(time, run):
        return None
    return bound_ns


def _promise(bound_ns: int | None, time: CpuTime, run: Run) -> str:
    """Say what a change can't fall below, beside what the code takes now."""
    if bound_ns is None:
        return "Only a trial shows its gain."
    before_ns = _before_ns(time, run)
    how = "measured without" if _is_measured(time, run) else "with"
    before = f"instead of {units.duration_ns(before_ns)} {how} the profiler"
    if _told_ns(bound_ns, time, run) is None:
        return f"Takes only the time of the new code, {before}."
    return f"Takes {units.duration_ns(bound_ns)} or more, {before}."


def _is_measured(time: CpuTime, run: Run) -> bool:
    bare = run.bare
    return bare is not None and bare.median_ns <= _NOT_LONGER * time.window_ns


def _before_ns(time: CpuTime, run: Run) -> float:
    """Give what the code takes now: without the profiler where that was measured."""
    if run.bare is not None and _is_measured(time, run):
        return run.bare.median_ns
    return time.window_ns


def _warnings(time: CpuTime) -> Iterator[str]:
    if time.queued_share >= _QUEUED_SHARE:
        yield (
            f"For {units.share(time.queued_share)} of the time the thread was ready "
            "and had no core: other programs, or more threads than cores, used them. "
            "All times are longer than on an idle machine."
        )
