# Spans as sets of intervals that are subtracted from each other, and kinds in a table.
from functools import reduce

KINDS = {
    "too small": "launch-bound",
    "memory": "memory-bound",
    "tensor cores": "compute-bound",
    "FP32 cores": "compute-bound",
    "FP64 units": "compute-bound",
}


def without(spans, start, end):
    """Take one piece out of spans that do not overlap."""
    left = []
    for a, b in spans:
        left += [(a, min(b, start))] * (a < start) + [(max(a, end), b)] * (end < b)
    return [(a, b) for a, b in left if a < b]


def together(pieces):
    found = []
    for each in pieces:
        found = without(found, each["start_ns"], each["end_ns"])
        found.append((each["start_ns"], each["end_ns"]))
    return found


def busy_ns(pieces):
    return sum(b - a for a, b in together(pieces))


def exposed_copy_ns(pieces):
    copies = together([each for each in pieces if each["kind"] != "kernel"])
    kernels = [each for each in pieces if each["kind"] == "kernel"]
    left = reduce(
        lambda spans, k: without(spans, k["start_ns"], k["end_ns"]), kernels, copies
    )
    return sum(b - a for a, b in left)


def explained(metrics):
    idle = metrics["idle"]
    waited = sum(each["time_ns"] for each in metrics["sync_points"])
    sync = idle["host_synchronize_ns"]
    yield "sync-bound", sync, min(sync, waited)
    plain = {
        "launch-bound": [idle["host_launching_ns"], idle["kernel_wait_ns"]],
        "host-bound": [
            sum(idle[f"host_{name}_ns"] for name in ("operator", "api", "python"))
        ],
        "communication-bound": [metrics["exposed_communication_ns"]],
        "transfer-bound": [metrics["exposed_host_copy_ns"]],
        "memory-bound": [metrics["exposed_copy_ns"] - metrics["exposed_host_copy_ns"]],
    }
    for kind, times in plain.items():
        for time in times:
            yield kind, time, time
    for each in metrics["kernel_work"]:
        kind, time = KINDS.get(each["bound"]), each["time_ns"]
        near = next(
            (each[n] for n in ("of_measured", "of_ceiling") if each[n] is not None), 1
        )
        if kind:
            yield kind, time, time if kind == "launch-bound" else time * (1 - near)


def window_ns(metrics):
    return metrics["window_ns"] - metrics["idle"]["profiler_ns"]


def bottleneck(report):
    metrics, shares = report["metrics"], {}
    if metrics["gpu_busy_ns"] == 0:
        return "unknown"
    for kind, time, _ in explained(metrics):
        shares[kind] = shares.get(kind, 0) + time
    ranked = sorted(shares, key=shares.get, reverse=True)
    first, second = (shares[kind] / window_ns(metrics) for kind in ranked[:2])
    work = metrics["kernel_work"]
    unknown = sum(w["time_ns"] for w in work if w["bound"] == "unknown") / window_ns(
        metrics
    )
    if unknown >= 0.4 and unknown > first:
        return "unknown"
    return ranked[0] if first >= 0.4 and second <= 0.8 * first else "mixed"


def line(report):
    metrics, kind = report["metrics"], bottleneck(report)
    by_line = {}
    if kind == "sync-bound":
        places = ((p["line"], p["stall_ns"]) for p in metrics["sync_points"])
    else:
        cause = "launching" if kind == "launch-bound" else "other"
        places = (
            (p["line"], p["time_ns"])
            for p in metrics["idle_places"]
            if p["cause"] == cause
        )
    for number, time in places:
        by_line[number] = max(time, by_line.get(number, 0))
    return max(by_line, key=by_line.get)


def at_best_ns(report):
    kind = bottleneck(report)
    mine = [
        (time, gain)
        for each, time, gain in explained(report["metrics"])
        if each == kind
    ]
    return window_ns(report["metrics"]) - (max(mine)[1] if mine else 0.0)
