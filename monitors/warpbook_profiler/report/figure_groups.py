"""The figures of a trace in groups, in the words that text and HTML show."""

from __future__ import annotations

from collections.abc import Iterable, Iterator

from warpbook_monitors import units
from warpbook_profiler.model.bare_run import BareRun
from warpbook_profiler.model.bare_words import at_best, figures
from warpbook_profiler.model.figures import Finding, Metrics
from warpbook_profiler.model.report_view import FigureGroup, LabelledFigure
from warpbook_profiler.model.table_cells import UNKNOWN, share

#: what the profiler took of the window changes no share that is read if it is less
_TOLD_SHARE = 0.01


def labelled_figures(figures: Iterable[tuple[str, str]]) -> tuple[LabelledFigure, ...]:
    """Give values with their labels."""
    return tuple(LabelledFigure(label, value) for label, value in figures)


#: of a smaller cause what is left without it is within the error
_LEAST_SHARE = 0.05


def advice(finding: Finding) -> str:
    """Write what may help, and what is left without the cause."""
    sentences = [finding.change] if finding.change else []
    if finding.bound_ns is not None and finding.share >= _LEAST_SHARE:
        sentences.append(at_best(finding))
    return " ".join(sentences)


def groups(
    metrics: Metrics,
    matched: int,
    gpu_recorded: bool = True,
    bare: BareRun | None = None,
    linked_by: str = "",
) -> tuple[FigureGroup, ...]:
    """Give all groups that have something to tell, the bare run's first.

    Args:
        metrics: the figures.
        matched: launches whose work on the GPU was found.
        gpu_recorded: else nobody knows whether the GPU was busy.
        bare: the same without the profiler, where it is known.
        linked_by: what tells that they are theirs, where it is not the usual key.
    """
    of_title = {
        "Without the profiler": () if bare is None else figures(bare),
        "As recorded, with the profiler": _gpu_time(
            metrics, gpu_recorded, has_shares=bare is None
        ),
        "Launches and waits": _launches(metrics, matched, linked_by),
        "Copies and communication": _traffic(metrics),
        "Kernels": _kernels(metrics),
    }
    groups = (
        FigureGroup(title, labelled_figures(of_title[title])) for title in of_title
    )
    return tuple(group for group in groups if group.figures)


def _gpu_time(
    metrics: Metrics, gpu_recorded: bool, has_shares: bool
) -> Iterator[tuple[str, str]]:
    idle, window_ns = metrics.idle, metrics.window_ns
    base_ns = window_ns - idle.profiler_ns

    def part(nanoseconds: int) -> str:
        if not has_shares or base_ns <= 0:
            return _ns(nanoseconds)
        return f"{_ns(nanoseconds)} ({share(nanoseconds / base_ns)})"

    yield "Window, profiled", _ns(window_ns)
    if not gpu_recorded:
        yield "Busy", UNKNOWN
        yield "Idle", UNKNOWN
        yield "The profiler's own", _ns(idle.profiler_ns)
        return
    if idle.profiler_ns >= _TOLD_SHARE * window_ns > 0:
        yield "– less the profiler's part", _ns(window_ns - idle.profiler_ns)
    yield "Busy", part(metrics.gpu_busy_ns)
    yield "Idle, waiting for the host", part(idle.host_wait_ns)
    what_the_host_did = {
        "after a wait for the GPU": idle.host_synchronize_ns,
        "launched": idle.host_launching_ns,
        "was in operators": idle.host_operator_ns,
        "was in other CUDA calls": idle.host_api_ns,
        "was in Python or other code": idle.host_python_ns,
    }
    for label, nanoseconds in what_the_host_did.items():
        if nanoseconds:
            yield f"– the host {label}", part(nanoseconds)
    yield "Idle between kernels", part(idle.kernel_wait_ns)
    yield "Idle, other", part(idle.other_ns - idle.profiler_ns)
    yield "Idle, due to the profiler", _ns(idle.profiler_ns)


def _launches(
    metrics: Metrics, matched: int, linked_by: str
) -> Iterator[tuple[str, str]]:
    if not metrics.launches:
        return
    lost = metrics.launches - matched
    yield "Launches, matched", f"{metrics.launches:,}, {matched:,}"
    if linked_by:
        yield "– linked by", linked_by
    if lost:
        yield "Lost", f"{lost:,} ({share(lost / metrics.launches)})"
    times = metrics.launch
    yield "Cost on the host", _sum_and_median(times.cost_ns, times.cost_median_ns)
    yield (
        "Latency of an empty stream",
        _sum_and_median(times.latency_ns, times.latency_median_ns),
    )
    yield (
        "Queue delay",
        _sum_and_median(times.queue_delay_ns, times.queue_delay_median_ns),
    )
    if metrics.synchronizations:
        yield (
            "Waits for the GPU",
            f"{metrics.synchronizations:,} for {_ns(metrics.synchronization_ns)}",
        )


def _traffic(metrics: Metrics) -> Iterator[tuple[str, str]]:
    if metrics.copy_ns:
        yield "Copies", _ns(metrics.copy_ns)
        yield "– hidden by kernels", _ns(metrics.copy_compute_overlap_ns)
        yield "– exposed", _ns(metrics.exposed_copy_ns)
    if metrics.communication_ns:
        yield "Communication", _ns(metrics.communication_ns)
        yield "– hidden by kernels", _ns(metrics.communication_compute_overlap_ns)
        yield "– exposed", _ns(metrics.exposed_communication_ns)


def _kernels(metrics: Metrics) -> Iterator[tuple[str, str]]:
    if not metrics.kernels:
        return
    time_ns = metrics.kernel_time_ns
    yield "Kernels", f"{metrics.kernels:,} in {_ns(time_ns)}"
    tensor = share(metrics.tensor_core_share)
    if metrics.tensor_core_unknown_ns and time_ns:
        tensor += f" ({share(metrics.tensor_core_unknown_ns / time_ns)} not known)"
    yield "Tensor cores, of kernel time", tensor
    yield "Occupancy, estimated", share(metrics.occupancy_share)
    yield "FLOPs, modelled", _flops(metrics)
    if metrics.modelled_bytes is not None:
        yield "Bytes, modelled at least", units.size(metrics.modelled_bytes)


def _flops(metrics: Metrics) -> str:
    if metrics.flops is None:
        if metrics.modelled_share is None:
            return f"{UNKNOWN} (no shapes were recorded)"
        return f"{UNKNOWN} (no operator here has a formula)"
    words = _flop(metrics.flops)
    if metrics.modelled_share is None:
        return words
    words += f" in {units.share(metrics.modelled_share)} of kernel time"
    seconds = metrics.modelled_share * metrics.kernel_time_ns / 1e9
    return f"{words}, {_flop(metrics.flops / seconds)}/s" if seconds else words


def _flop(count: float) -> str:
    for prefix, size in (("T", 1e12), ("G", 1e9), ("M", 1e6)):
        if count >= size:
            return f"{count / size:,.3g} {prefix}FLOP"
    return f"{count:,.0f} FLOP"


def _sum_and_median(total_ns: int, median_ns: float | None) -> str:
    if median_ns is None:
        return UNKNOWN
    return f"{_ns(total_ns)} in all, median {_ns(median_ns)}"


def _ns(nanoseconds: float) -> str:
    return units.duration_ns(nanoseconds)
