"""Judges a cell by its bare run: the causes that are left when the profiler is gone.

The verdict is that of the replayed window. Where a time was only estimated it has to
hold at both ends of the range; if it does not, the report says between which two.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
from msgspec import structs

from warpbook_monitors.units import duration_ns
from warpbook_monitors.verdict_kinds import Kind
from warpbook_profiler.advice.evidence import Evidence
from warpbook_profiler.events.columns import Bools, Category, Columns, rows_by
from warpbook_profiler.events.run import Run
from warpbook_profiler.facts.trace import Trace
from warpbook_profiler.model.bare_run import BareRun, BareTimes, Limit
from warpbook_profiler.model.bare_words import longer, sentence
from warpbook_profiler.model.change import Change
from warpbook_profiler.model.figures import CellVerdict, Finding, Metrics
from warpbook_profiler.replay.estimate import SPREAD_RATIO, Bare, bare
from warpbook_profiler.replay.retiming import Retiming
from warpbook_profiler.replay.simulation import Replayed
from warpbook_profiler.techniques.registry import advise
from warpbook_profiler.verdict.findings import find, judge
from warpbook_profiler.verdict.leading_cause import (
    first_of_host,
    in_words,
    nearly_leading,
    shares_by_kind,
)
from warpbook_profiler.verdict.metrics import measure

#: of the window, what the GPU is busy if the GPU limits it
_GPU_SHARE = 0.5
#: the profiler makes nothing faster; runs differ by less
_SLOWER = 1.1
#: of the GPU's work, what another clock leaves at least
_LEAST_BUSY = 0.25
#: ends that are so near each other are judged alike
_NEAR = 0.05


@dataclass(frozen=True)
class Judged:
    """What is concluded of the bare run."""

    bare: BareRun
    #: its figures
    metrics: Metrics
    findings: tuple[Finding, ...]
    verdict: CellVerdict
    #: what to change, the one that gains most first
    changes: tuple[Change, ...]
    #: what they follow from
    evidence: Evidence


@dataclass(frozen=True)
class Replay:
    """The window without the profiler's part, before changes are looked for."""

    evidence: Evidence
    findings: tuple[Finding, ...]
    #: the cause that leads of those of the host
    of_host: Kind | None
    #: which cause leads depends on what the host takes
    depends_on_host: bool


def judge_bare(trace: Trace, recorded: Metrics) -> Judged:
    """Replay the window without the profiler's part, and judge that.

    Args:
        trace: the window, and what was measured without the profiler.
        recorded: the figures of the window as it was recorded.
    """
    replay = replay_bare(trace, recorded)
    evidence = replay.evidence
    changes, problems = advise(evidence)
    result, metrics = evidence.bare_run, evidence.metrics
    result = structs.replace(result, cautions=(*result.cautions, *problems))
    verdict = judge(
        metrics,
        replay.findings,
        trace.run.gpu_name,
        result,
        changes,
        replay.of_host,
    )
    findings = _without_general_advice(replay.findings, verdict)
    if result.between:
        verdict = _between(result, findings, replay.depends_on_host)
    return Judged(result, metrics, findings, verdict, changes, evidence)


def replay_bare(trace: Trace, recorded: Metrics) -> Replay:
    """Replay the window without the profiler's part; see `judge_bare`."""
    events, run = trace.events, trace.run
    measured, caution = _usable(run, recorded.gpu_busy_ns)
    measured_ns = None if measured is None else measured.median_ns
    estimate = bare(trace, measured_ns)

    retiming = Retiming(events.where(_outline(events)), run, estimate.program)

    def at(
        replayed: Replayed, like: Metrics, in_detail: bool = False
    ) -> tuple[Metrics, tuple[Finding, ...]]:
        moved = Trace(*retiming.at(replayed))
        metrics = measure(moved, like=like, in_detail=in_detail)
        return metrics, find(metrics, run.gpus)

    middle = metrics, findings = at(estimate.middle, recorded, in_detail=True)
    ends = [middle]
    if measured is None and estimate.high_ns - estimate.low_ns > _rest(estimate):
        ends = [at(estimate.low, metrics), at(estimate.high, metrics)]
    verdicts = [judge(*end, run.gpu_name) for end in ends]
    kinds = tuple(dict.fromkeys(judged.kind for judged in verdicts))
    depends_on_host = len(kinds) > 1
    if not depends_on_host and kinds != ("unknown",):
        of_ns = metrics.window_ns - metrics.idle.profiler_ns
        kinds = nearly_leading(shares_by_kind(findings, of_ns))
    result = _bare_run(estimate, run, measured, [end for end, _ in (*ends, middle)])
    result = structs.replace(result, cautions=(*result.cautions, *caution))
    of_host = first_of_host(kinds)
    if len(kinds) > 1 and of_host is None:
        result = structs.replace(result, between=kinds)
    result = structs.replace(result, sentence=sentence(result))
    findings = _promised(findings, ends[0][1], result, metrics)
    evidence = Evidence(trace, estimate, result, metrics)
    return Replay(evidence, findings, of_host, depends_on_host)


def _outline(events: Columns) -> Bools:
    """Leave out operators within operators: places are named by the outermost."""
    kept = ~events.is_in(Category.OPERATOR)
    rows = np.flatnonzero(~kept)
    is_operator = np.array(["::" in name for name in events.names], np.bool_)
    of_library = is_operator[events.name[rows]]
    kept[rows[~of_library]] = True
    rows = rows[of_library]
    for mine in rows_by(events.track[rows]):
        own = rows[mine]
        outermost = np.ones(len(own), np.bool_)
        ended = np.maximum.accumulate(events.end_ns[own])
        outermost[1:] = events.start_ns[own[1:]] >= ended[:-1]
        kept[own[outermost]] = True
    return kept


def _rest(estimate: Bare) -> float:
    """Give how far the ends lie apart where only what varies between runs does it."""
    return (_NEAR + 2 * SPREAD_RATIO) * estimate.middle_ns


def _usable(run: Run, busy_ns: int) -> tuple[BareTimes | None, tuple[str, ...]]:
    """Leave a measured time out that is of something else; say why."""
    measured = run.bare
    if measured is None:
        return None, ()
    profiled_ns = run.end_ns - run.start_ns
    if measured.median_ns > _SLOWER * profiled_ns:
        return None, (longer(measured),)
    if measured.median_ns < _LEAST_BUSY * busy_ns:
        return None, (
            f"Without the profiler the cell took {duration_ns(measured.median_ns)}, "
            f"and the GPU worked {duration_ns(busy_ns)} in the profiled run: the two "
            "runs did different work (other data). Run it once more without the "
            "profiler.",
        )
    if measured.source == "first execution":
        return measured, (
            "The bare time is from the cell's first run, which also loads and "
            "compiles: run it once more without the profiler.",
        )
    return measured, ()


def _bare_run(
    estimate: Bare, run: Run, measured: BareTimes | None, replays: list[Metrics]
) -> BareRun:
    """Put the result together; of the replays the last is the one in the middle."""
    *ends, metrics = replays
    if measured is None:
        time_ns, low_ns, high_ns = estimate.middle_ns, estimate.low_ns, estimate.high_ns
    else:
        time_ns, low_ns = measured.median_ns, measured.least_ns
        high_ns = measured.most_ns
    busy = {end.gpu_busy_ns >= _GPU_SHARE * max(end.window_ns, 1) for end in ends}
    limit: Limit = "between" if len(busy) > 1 else "GPU" if True in busy else "host"
    return BareRun(
        basis="estimated" if measured is None else "measured",
        time_ns=round(time_ns),
        low_ns=round(low_ns),
        high_ns=round(high_ns),
        limit=limit,
        gpu_busy_ns=metrics.gpu_busy_ns,
        idle=metrics.idle,
        profiled_ns=run.end_ns - run.start_ns,
        runs=0 if measured is None else measured.runs,
        source=None if measured is None else measured.source,
        host_share=estimate.host_share,
        cautions=estimate.cautions,
        calibration=run.calibration.words,
    )


def _promised(
    findings: tuple[Finding, ...],
    at_low: tuple[Finding, ...],
    bare_run: BareRun,
    metrics: Metrics,
) -> tuple[Finding, ...]:
    """Promise no time above what the cell takes anyway, at its fastest.

    A replay that misses a measured time misses what it promises in proportion.
    """
    ratio = min(bare_run.time_ns / max(metrics.window_ns, 1), 1.0)
    lowest = {
        (finding.kind, finding.topic, finding.change): finding.bound_ns
        for finding in reversed(at_low)
        if finding.bound_ns is not None
    }
    return tuple(
        finding
        if finding.bound_ns is None
        else structs.replace(
            finding,
            bound_ns=round(
                min(
                    finding.bound_ns * ratio,
                    lowest.get(
                        (finding.kind, finding.topic, finding.change), finding.bound_ns
                    )
                    * ratio,
                    bare_run.low_ns,
                )
            ),
        )
        for finding in findings
    )


def _without_general_advice(
    findings: tuple[Finding, ...], verdict: CellVerdict
) -> tuple[Finding, ...]:
    """Leave out what may help with the verdict's cause where a change is named."""
    if verdict.change_at is None:
        return findings
    return tuple(
        structs.replace(finding, change="") if finding.kind == verdict.kind else finding
        for finding in findings
    )


def _between(
    bare_run: BareRun, findings: tuple[Finding, ...], depends_on_host: bool
) -> CellVerdict:
    """Say between which verdicts it is.

    Args:
        bare_run: with the two.
        findings: half-way.
        depends_on_host: else these are too near to one another.
    """
    kinds = [kind for kind in bare_run.between if kind != "mixed"]
    either = f"Either {' or '.join(kinds)}"
    if len(kinds) == 1:
        either += ", or no single cause leads"
    evidence = " ".join(finding.evidence for finding in findings[:2])
    parts = tuple(finding.part for finding in findings[:2])
    said = (
        f"{either}: the profiler slowed the host down by an unknown "
        "amount. Run the cell once without the profiler, then profile it again. In "
        f"the middle of the range: {evidence}"
    )
    if not depends_on_host:
        said = f"{either}: {in_words(shares_by_kind(findings))}. {evidence}"
    return CellVerdict("mixed", said, parts=parts)
