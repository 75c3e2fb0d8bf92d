"""What held a trace's window back: every cause with its time, and one verdict.

Each finding says how much of the window it explains, what shows it, what to change
and what the window would be without it. Rules look at causes (who waited for whom,
what the hardware had to move or compute), never at the names of a user's kernels.
The profiler's own doing belongs to nobody and is taken from the window first.
"""

from __future__ import annotations

from collections.abc import Collection, Iterable, Iterator, Sequence

from warpbook_monitors import units
from warpbook_monitors.verdict_kinds import Kind
from warpbook_profiler.advice.words import advised
from warpbook_profiler.events.run import GpuLimits
from warpbook_profiler.facts.kernel_work import UNKNOWN
from warpbook_profiler.model.bare_run import BareRun
from warpbook_profiler.model.bare_words import at_best, took
from warpbook_profiler.model.change import Change
from warpbook_profiler.model.figures import (
    BETWEEN,
    COMMUNICATION,
    DEVICE_COPIES,
    HOST_COPIES,
    LAUNCHING,
    OTHER_WORK,
    UNTOLD,
    WAITS,
    CellVerdict,
    Finding,
    Metrics,
    SyncTotal,
    kernel_part,
)
from warpbook_profiler.verdict.advice import copied_better
from warpbook_profiler.verdict.kernel_causes import (
    FUSE,
    OF_NVIDIA,
    Cause,
    kernel_causes,
)
from warpbook_profiler.verdict.leading_cause import (
    CLEAR_SHARE,
    HOST_KINDS,
    MOST_NAMED,
    SHARE,
    in_words,
    leading,
    leads_alone,
    shares_by_kind,
    with_rounded_shares,
)

_LAUNCH_LESS = "Launch less: torch.compile, a CUDA graph, or larger batches."
_MOVE_OFF = (
    "Move that work off the critical path: load data in workers, prepare the next "
    "batch while the GPU works, or compile and set up once beforehand."
)
_WARM_UP = (
    "Warm up before measuring if these are first calls, in which CUDA loads and "
    "initializes; otherwise make them once, outside the loop."
)
#: a cause that explains less than this of the window is not told
_LEAST_SHARE = 0.02


def find(metrics: Metrics, gpus: Sequence[GpuLimits] = ()) -> tuple[Finding, ...]:
    """Give all causes, the one that explains most first.

    Args:
        metrics: of the window.
        gpus: what it ran on, as far as known.
    """
    window_ns = metrics.window_ns - metrics.idle.profiler_ns
    if window_ns <= 0:
        return ()
    far = {
        work.part for work in metrics.kernel_work if work.far or work.multiprocessors
    }
    findings = [
        Finding(
            kind,
            explains_ns,
            explains_ns / window_ns,
            evidence,
            change,
            None if gain_ns is None else max(window_ns - gain_ns, 0),
            topic,
            part,
            part in far,
        )
        for kind, topic, part, explains_ns, gain_ns, evidence, change in _causes(
            metrics, gpus
        )
        if explains_ns >= _LEAST_SHARE * window_ns
    ]
    return with_rounded_shares(
        sorted(findings, key=lambda finding: -finding.explains_ns)
    )


def judge(
    metrics: Metrics,
    findings: tuple[Finding, ...],
    gpu_name: str | None = None,
    bare: BareRun | None = None,
    changes: Sequence[Change] = (),
    kind: Kind | None = None,
) -> CellVerdict:
    """Say in one sentence what holds the window back.

    The change that it names is the first that acts on the cause that it names, and
    gains what one would see.

    Args:
        metrics: of the window.
        findings: of these metrics.
        gpu_name: what it ran on.
        bare: the window's time, where it is not that of the metrics.
        changes: what to change, the one that gains most first.
        kind: the cause to name; without one, that which leads.
    """
    if not metrics.gpu_busy_ns:
        return CellVerdict("unknown", "Nothing ran on the GPU in this window.")
    window_ns = metrics.window_ns - metrics.idle.profiler_ns
    shares, written = shares_by_kind(findings, window_ns), shares_by_kind(findings)
    untold = _untold_share(metrics)
    if untold >= CLEAR_SHARE and untold > max(shares.values(), default=0.0):
        tool = ""
        if OF_NVIDIA.match(gpu_name or ""):
            tool = " Their stalls (%%gpuprof --stalls) show where their warps wait."
        cause = (
            f"Neither operators nor launches show what limits the kernels that took "
            f"{units.share(untold)} of the time.{tool}"
        )
        return _verdict("unknown", cause, (kernel_part(UNKNOWN, None),), changes, bare)
    if kind not in shares:
        kind = leading(shares)
    if kind == "mixed":
        named = tuple(shares)[:MOST_NAMED]
        evidence = " ".join(finding.evidence for finding in findings[:2])
        named_first = in_words(written) or "none was found"
        cause = f"No single cause leads: {named_first}. {evidence}"
        return _verdict("mixed", cause, _parts(findings, named), changes, bare)
    first, *_ = of_kind = tuple(one for one in findings if one.kind == kind)
    if not leads_alone(kind, shares):
        cause = f"The host decides: {in_words(written)}. {first.evidence}"
        parts = _parts(findings, HOST_KINDS)
        return _verdict(kind, cause, parts, changes, bare, first.change)
    window = units.duration_ns(window_ns)
    advice = first.change
    if first.bound_ns is not None:
        advice += f" {at_best(first, window if bare is None else took(bare))}"
    parts = _parts(of_kind, (kind,))
    return _verdict(kind, first.evidence, parts, changes, bare, advice.strip())


def _parts(findings: Iterable[Finding], kinds: Collection[Kind]) -> tuple[str, ...]:
    return tuple(finding.part for finding in findings if finding.kind in kinds)


def _verdict(
    kind: Kind,
    cause: str,
    parts: tuple[str, ...],
    changes: Sequence[Change],
    bare: BareRun | None,
    advice: str = "",
) -> CellVerdict:
    """Put the change that acts on the cause behind it, else what may help with it."""
    at = next(
        (
            at
            for at, change in enumerate(changes)
            if not change.gains_nothing
            and not set(parts).isdisjoint(change.parts)
            and (bare is None or change.gains(bare.time_ns))
        ),
        None,
    )
    if at is not None:
        advice = advised(changes[at], cause)
    return CellVerdict(kind, f"{cause} {advice}".rstrip(), advice, parts, at)


def _untold_share(metrics: Metrics) -> float:
    """Give the part of the window in kernels whose limit is not known."""
    window_ns = metrics.window_ns - metrics.idle.profiler_ns
    untold_ns = sum(w.time_ns for w in metrics.kernel_work if w.bound == UNKNOWN)
    return untold_ns / window_ns if window_ns > 0 else 0.0


def _causes(metrics: Metrics, gpus: Sequence[GpuLimits]) -> Iterator[Cause]:
    yield from _host_causes(metrics)
    yield from _untold_idle(metrics)
    yield from _traffic_causes(metrics)
    yield from kernel_causes(metrics, gpus)


def _host_causes(metrics: Metrics) -> Iterator[Cause]:
    if not metrics.launches:
        return
    idle = metrics.idle
    sync = max(metrics.sync_points, key=lambda point: point.stall_ns, default=None)
    if sync is not None and idle.host_synchronize_ns:
        yield (
            "sync-bound",
            "host-waits",
            WAITS,
            idle.host_synchronize_ns,
            # who waits no more still has to do what it did beside
            min(
                idle.host_synchronize_ns,
                sum(point.time_ns for point in metrics.sync_points),
            ),
            f"The GPU idled {SHARE} of the time "
            f"because the host had waited for it, mostly in {_place(sync)}, and had "
            "nothing queued.",
            "Wait less often: keep results on the GPU and read them once at the end.",
        )
    yield (
        "launch-bound",
        "graphs",
        LAUNCHING,
        idle.host_launching_ns,
        idle.host_launching_ns,
        f"The GPU idled {SHARE} of the time while the "
        f"host launched {metrics.launches:,} "
        f"piece{'s' if metrics.launches != 1 else ''} of work one by one"
        f"{_a_launch(metrics)}{_mostly(metrics, 'launching')}.",
        _LAUNCH_LESS,
    )
    pieces = metrics.kernels + sum(copy.calls for copy in metrics.copies)
    # in a CUDA graph they are launched as one already
    are_launched_as_one = pieces > 2 * metrics.launches
    yield (
        "launch-bound",
        None if are_launched_as_one else "graphs",
        BETWEEN,
        idle.kernel_wait_ns,
        idle.kernel_wait_ns,
        f"The GPU idled {SHARE} of the time going from one "
        f"launched kernel or copy to the next ({pieces:,} in all).",
        FUSE if are_launched_as_one else _LAUNCH_LESS,
    )
    other = idle.host_operator_ns + idle.host_api_ns + idle.host_python_ns
    parts = {
        "in operators": idle.host_operator_ns,
        "in CUDA calls that do more than launch": idle.host_api_ns,
        "in Python or other code": idle.host_python_ns,
    }
    where = max(parts, key=lambda name: parts[name])
    yield (
        "host-bound",
        "host-waits",
        OTHER_WORK,
        other,
        other,
        f"The GPU idled {SHARE} of the time while the host did other "
        f"work, most of it {where} ({units.duration_ns(parts[where])})"
        f"{_mostly(metrics, 'other')}.",
        _WARM_UP if parts[where] == idle.host_api_ns else _MOVE_OFF,
    )


def _a_launch(metrics: Metrics) -> str:
    cost_ns = metrics.launch.cost_median_ns
    return "" if cost_ns is None else f", {units.duration_ns(cost_ns)} a launch"


def _untold_idle(metrics: Metrics) -> Iterator[Cause]:
    idle = metrics.idle
    idle_ns = idle.other_ns - idle.profiler_ns
    if not metrics.launches:
        idle_ns += idle.host_wait_ns + idle.kernel_wait_ns
        yield (
            "unknown",
            None,
            UNTOLD,
            idle_ns,
            None,
            f"The GPU idled {SHARE} of the time, and no launch in the trace shows why.",
            "Also record the host's calls.",
        )
        return
    yield (
        "unknown",
        None,
        UNTOLD,
        idle_ns,
        None,
        # a launch that was not recorded counts here, too
        f"The GPU idled {SHARE} of the time although, as "
        "far as is known, its next work was queued or being launched: it waited for an "
        "event of another stream, a host function, memory or the launching call.",
        "Look in the timeline for what ends where these gaps end.",
    )


def _mostly(metrics: Metrics, cause: str) -> str:
    """Name the place where most of it was, if there is one."""
    places = [place for place in metrics.idle_places if place.cause == cause]
    if not places:
        return ""
    first = places[0]
    if first.time_ns < CLEAR_SHARE * sum(place.time_ns for place in places):
        return ""
    operator = "" if first.operator is None else f" in {first.operator}"
    line = "" if first.line is None else f" on line {first.line}"
    return f", mostly{operator}{line}" if operator or line else ""


def _place(sync: SyncTotal) -> str:
    calls = f"{sync.calls:,} calls" if sync.calls != 1 else "1 call"
    line = "" if sync.line is None else f" on line {sync.line}"
    if sync.operator is None:
        return f"{sync.name}{line} ({calls})"
    return f"{sync.operator}{line} ({calls} of {sync.name})"


def _traffic_causes(metrics: Metrics) -> Iterator[Cause]:
    host = [copy for copy in metrics.copies if copy.direction in ("HtoD", "DtoH")]
    time_ns = sum(row.time_ns for row in host)
    exposed_ns = metrics.exposed_host_copy_ns or 0
    if time_ns:
        slow = max(host, key=lambda row: row.time_ns)
        rate = f" at {slow.gb_per_s:.1f} GB/s" if slow.gb_per_s else ""
        topic, change = copied_better(slow)
        yield (
            "transfer-bound",
            topic,
            HOST_COPIES,
            exposed_ns,
            exposed_ns,
            f"Copies between host and GPU took {SHARE} "
            f"of the time while no compute kernel ran, mostly {slow.direction} "
            f"({slow.host_memory or 'unknown'} memory){rate}.",
            change,
        )
    device_ns = metrics.exposed_copy_ns - exposed_ns
    yield (
        "memory-bound",
        "memory-traffic",
        DEVICE_COPIES,
        device_ns,
        device_ns,
        f"Copies within device memory took {SHARE} of "
        "the window while no compute kernel ran.",
        "Copy less: avoid .clone(), .contiguous() and concatenation in a loop.",
    )
    yield (
        "communication-bound",
        "communication",
        COMMUNICATION,
        metrics.exposed_communication_ns,
        metrics.exposed_communication_ns,
        "Communication between GPUs took "
        f"{SHARE} of the time "
        "while the GPU computed nothing else "
        f"({units.duration_ns(metrics.communication_ns)} in total).",
        "Overlap it with the backward pass, send larger buckets, or send less (bf16).",
    )
