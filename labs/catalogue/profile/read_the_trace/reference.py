"""What held a cell back: causes with their time, added up by kind."""

CLEAR, CLOSE = 0.4, 0.8
COMPUTE = ("tensor cores", "FP32 cores", "FP64 units")


def _held(pieces, is_counted):
    """Measure how long a condition on the pieces that are running holds."""
    marks = sorted({piece[end] for piece in pieces for end in ("start_ns", "end_ns")})
    total = 0
    for begin, end in zip(marks, marks[1:]):
        running = [
            piece["kind"]
            for piece in pieces
            if piece["start_ns"] <= begin and piece["end_ns"] >= end
        ]
        total += (end - begin) * is_counted(running)
    return total


def busy_ns(pieces):
    return _held(pieces, lambda running: bool(running))


def exposed_copy_ns(pieces):
    return _held(pieces, lambda running: "copy" in running and "kernel" not in running)


def _window_ns(metrics):
    return metrics["window_ns"] - metrics["idle"]["profiler_ns"]


def _causes(metrics):
    """Give kind, time explained, and what could be gained; None if nobody knows."""
    idle = metrics["idle"]
    other = ("host_operator_ns", "host_api_ns", "host_python_ns")
    parts = [
        ("launch-bound", idle["host_launching_ns"]),
        ("launch-bound", idle["kernel_wait_ns"]),
        ("host-bound", sum(idle[name] for name in other)),
        ("communication-bound", metrics["exposed_communication_ns"]),
    ]
    exposed, with_host = metrics["exposed_copy_ns"], metrics["exposed_host_copy_ns"]
    parts += [("transfer-bound", with_host), ("memory-bound", exposed - with_host)]
    synchronize_ns = idle["host_synchronize_ns"]
    # who waits no more still has to do what it did beside
    waited_ns = sum(point["time_ns"] for point in metrics["sync_points"])
    causes = [("sync-bound", synchronize_ns, min(synchronize_ns, waited_ns))]
    causes += [(kind, time_ns, time_ns) for kind, time_ns in parts]
    for work in metrics["kernel_work"]:
        time_ns, reached = work["time_ns"], work["of_measured"]
        if reached is None:
            reached = work["of_ceiling"]
        gain = None if reached is None else time_ns * (1 - reached)
        if work["bound"] == "too small":
            causes.append(("launch-bound", time_ns, time_ns))
        elif work["bound"] == "memory":
            causes.append(("memory-bound", time_ns, gain))
        elif work["bound"] in COMPUTE:
            causes.append(("compute-bound", time_ns, gain))
    return causes


def bottleneck(report):
    metrics = report["metrics"]
    window = _window_ns(metrics)
    shares = {}
    for kind, time_ns, _ in _causes(metrics):
        shares[kind] = shares.get(kind, 0) + time_ns / window
    (kind, first), (_, second) = sorted(shares.items(), key=lambda pair: -pair[1])[:2]
    work = metrics["kernel_work"]
    untold = sum(row["time_ns"] for row in work if row["bound"] == "unknown")
    if not metrics["gpu_busy_ns"]:
        return "unknown"
    if untold / window >= CLEAR and untold / window > first:
        return "unknown"
    if first < CLEAR or second > CLOSE * first:
        return "mixed"
    return kind


def line(report):
    metrics, kind = report["metrics"], bottleneck(report)
    if kind == "sync-bound":
        # not the longest call: while the host waits, the GPU may well be busy
        return max(metrics["sync_points"], key=lambda point: point["stall_ns"])["line"]
    cause = "launching" if kind == "launch-bound" else "other"
    places = [place for place in metrics["idle_places"] if place["cause"] == cause]
    return max(places, key=lambda place: place["time_ns"])["line"]


def at_best_ns(report):
    metrics, kind = report["metrics"], bottleneck(report)
    mine = [cause for cause in _causes(metrics) if cause[0] == kind]
    _, _, gain = max(mine, key=lambda cause: cause[1])
    return _window_ns(metrics) - (gain or 0)
