# Time is cut at all marks, a kind of work is a whole number with a bit for each cut, and causes a class.
import dataclasses
import itertools


def cuts(pieces):
    marks = sorted({at for each in pieces for at in (each["start_ns"], each["end_ns"])})
    number = {at: place for place, at in enumerate(marks)}
    bits = {"kernel": 0, "copy": 0}
    for each in pieces:
        begin, end = number[each["start_ns"]], number[each["end_ns"]]
        bits[each["kind"]] |= (1 << end) - (1 << begin)
    return bits, [later - at for at, later in itertools.pairwise(marks)]


def length(bits, lengths):
    return sum(each for place, each in enumerate(lengths) if bits >> place & 1)


def busy_ns(pieces):
    bits, lengths = cuts(pieces)
    return length(bits["kernel"] | bits["copy"], lengths)


def exposed_copy_ns(pieces):
    bits, lengths = cuts(pieces)
    return length(bits["copy"] & ~bits["kernel"], lengths)


@dataclasses.dataclass(order=True)
class Cause:
    time: float
    kind: str = dataclasses.field(compare=False)
    gain: float = dataclasses.field(default=-1, compare=False)

    def __post_init__(self):
        if self.gain < 0:
            self.gain = self.time


def causes(metrics):
    match metrics:
        case {
            "idle": {
                "host_synchronize_ns": synchronize,
                "host_launching_ns": launching,
                "kernel_wait_ns": waiting,
                "host_operator_ns": operator,
                "host_api_ns": api,
                "host_python_ns": python,
            },
            "exposed_copy_ns": copies,
            "exposed_host_copy_ns": with_host,
            "exposed_communication_ns": communication,
            "sync_points": points,
        }:
            waits = sum(each["time_ns"] for each in points)
            yield Cause(synchronize, "sync-bound", min(synchronize, waits))
            yield from (Cause(each, "launch-bound") for each in (launching, waiting))
            yield Cause(operator + api + python, "host-bound")
            yield Cause(with_host, "transfer-bound")
            yield Cause(copies - with_host, "memory-bound")
            yield Cause(communication, "communication-bound")
    for work in metrics["kernel_work"]:
        ceilings = (work["of_measured"], work["of_ceiling"])
        reached = next((each for each in ceilings if each is not None), 1.0)
        gain = work["time_ns"] * (1 - reached)
        match work["bound"]:
            case "too small":
                yield Cause(work["time_ns"], "launch-bound")
            case "memory":
                yield Cause(work["time_ns"], "memory-bound", gain)
            case "tensor cores" | "FP32 cores" | "FP64 units":
                yield Cause(work["time_ns"], "compute-bound", gain)


def window(metrics):
    return metrics["window_ns"] - metrics["idle"]["profiler_ns"]


def bottleneck(report):
    metrics = report["metrics"]
    if metrics["gpu_busy_ns"] == 0:
        return "unknown"
    by_kind = {}
    for each in causes(metrics):
        by_kind[each.kind] = by_kind.get(each.kind, 0) + each.time
    kind = max(by_kind, key=by_kind.__getitem__)
    first = by_kind.pop(kind)
    work = metrics["kernel_work"]
    unknown = sum(each["time_ns"] * (each["bound"] == "unknown") for each in work)
    if unknown > first and unknown / window(metrics) >= 0.4:
        return "unknown"
    is_clear = first / window(metrics) >= 0.4 and max(by_kind.values()) <= 0.8 * first
    return kind if is_clear else "mixed"


def line(report):
    metrics = report["metrics"]
    kind = bottleneck(report)
    places = [
        (each["time_ns"], each["line"])
        for each in metrics["idle_places"]
        if each["cause"] == ("launching" if kind == "launch-bound" else "other")
    ]
    if kind == "sync-bound":
        places = [(each["stall_ns"], each["line"]) for each in metrics["sync_points"]]
    return max(places)[1]


def at_best_ns(report):
    kind = bottleneck(report)
    largest = max(each for each in causes(report["metrics"]) if each.kind == kind)
    return float(window(report["metrics"]) - largest.gain)
