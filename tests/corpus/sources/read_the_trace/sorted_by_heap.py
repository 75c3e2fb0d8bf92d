# Pieces are merged by a heap, and causes are counted in Counters.
import heapq
from collections import Counter, defaultdict

COMPUTE = {"tensor cores", "FP32 cores", "FP64 units"}


def merged(pieces):
    heap = [(each["start_ns"], each["end_ns"]) for each in pieces]
    heapq.heapify(heap)
    found = []
    while heap:
        start, end = heapq.heappop(heap)
        if found and start <= found[-1][1]:
            found[-1][1] = max(found[-1][1], end)
        else:
            found.append([start, end])
    return found


def length(spans):
    return sum(end - start for start, end in spans)


def busy_ns(pieces):
    return length(merged(pieces))


def exposed_copy_ns(pieces):
    # what all cover, less what kernels cover
    return busy_ns(pieces) - busy_ns(
        [each for each in pieces if each["kind"] == "kernel"]
    )


def window(report):
    metrics = report["metrics"]
    return metrics["window_ns"] - metrics["idle"]["profiler_ns"]


def causes(report):
    metrics = report["metrics"]
    idle, by_kind = metrics["idle"], defaultdict(list)
    wait = idle["host_synchronize_ns"]
    waits = sum(each["time_ns"] for each in metrics["sync_points"])
    by_kind["sync-bound"].append((wait, min(wait, waits)))
    for name in ("host_launching_ns", "kernel_wait_ns"):
        by_kind["launch-bound"].append((idle[name], idle[name]))
    other = idle["host_operator_ns"] + idle["host_api_ns"] + idle["host_python_ns"]
    by_kind["host-bound"].append((other, other))
    over_link = metrics["exposed_host_copy_ns"]
    within = metrics["exposed_copy_ns"] - over_link
    by_kind["transfer-bound"].append((over_link, over_link))
    by_kind["memory-bound"].append((within, within))
    talk = metrics["exposed_communication_ns"]
    by_kind["communication-bound"].append((talk, talk))
    for work in metrics["kernel_work"]:
        time, bound = work["time_ns"], work["bound"]
        near = (
            work["of_ceiling"] if work["of_measured"] is None else work["of_measured"]
        )
        gain = 0 if near is None else time - time * near
        if bound == "too small":
            by_kind["launch-bound"].append((time, time))
        elif bound == "memory":
            by_kind["memory-bound"].append((time, gain))
        elif bound in COMPUTE:
            by_kind["compute-bound"].append((time, gain))
    return by_kind


def bottleneck(report):
    total = Counter(
        {kind: sum(time for time, _ in those) for kind, those in causes(report).items()}
    )
    (kind, first), (_, second) = total.most_common(2)
    unknown = sum(
        w["time_ns"]
        for w in report["metrics"]["kernel_work"]
        if w["bound"] == "unknown"
    )
    enough = 0.4 * window(report)
    if not report["metrics"]["gpu_busy_ns"] or (unknown >= enough and unknown > first):
        return "unknown"
    return "mixed" if first < enough or second > 0.8 * first else kind


def line(report):
    metrics, kind = report["metrics"], bottleneck(report)
    if kind == "sync-bound":
        return sorted(
            (each["stall_ns"], each["line"]) for each in metrics["sync_points"]
        )[-1][1]
    wanted = {"launch-bound": "launching"}.get(kind, "other")
    return max(
        (p["time_ns"], p["line"])
        for p in metrics["idle_places"]
        if p["cause"] == wanted
    )[1]


def at_best_ns(report):
    those = causes(report).get(bottleneck(report), [])
    _, gain = max(those, default=(0, 0), key=lambda each: each[0])
    return float(window(report) - gain)
