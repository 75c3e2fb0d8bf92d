"""Launches and their work, linked as one profiler or another writes it."""

import json
import tracemalloc
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from tests.profiler.trace.written import call, kernel, program, report_of, trace
from warpbook_profiler.facts.trace import Trace
from warpbook_profiler.files.chrome import read_chrome_trace
from warpbook_profiler.replay.program import program_of
from warpbook_profiler.replay.waits import STREAM
from warpbook_profiler.report.report import TraceReport

Event = dict[str, Any]
Events = list[Event]


def unlinked(**more: Any) -> Events:
    """The usual program; what links a launch and its kernel is left out."""
    events = program(**more)
    for event in events:
        del event["args"]["correlation"]
    return events


def by_id(key: str, events: Events | None = None) -> Events:
    """Launch and kernel share an id, which an operator's two pairs have in common."""
    events = unlinked() if events is None else events
    for at, event in enumerate(events):
        event["args"][key] = at // 4 + 1
    return events


def by_arrows(flow: str) -> Events:
    events = unlinked()
    for at, event in enumerate(list(events)):
        end = {"ph": "f" if at % 2 else "s", "bp": "e", "cat": flow, "id": at // 2}
        events.append({**end, **{key: event[key] for key in ("pid", "tid", "ts")}})
    return events


def of_xla() -> Events:
    """Nothing has a category; the work stands twice, by kernels and by operations."""
    events = unlinked()
    for at, event in enumerate(events):
        event["args"] = {"correlation_id": str(at // 2 + 1)}
        del event["cat"]
    again = [{**event, "tid": 9} for event in events if event["name"] == "k"]
    labels = [
        (0, None, "/device:GPU:0"),
        (0, 7, "Stream #13(Compute)"),
        (0, 9, "XLA Ops"),
        (1, None, "/host:CPU"),
    ]
    for pid, tid, name in labels:
        what = "process_name" if tid is None else "thread_name"
        label = {"ph": "M", "pid": pid, "name": what, "args": {"name": name}}
        events.append(label if tid is None else {**label, "tid": tid})
    return events + again


def agrees(found: TraceReport, tmp_path: Path) -> None:
    """What is said of the usual trace is said of this one."""
    usual = report_of(tmp_path, trace(*program()))
    assert found.verdict.kind == usual.verdict.kind
    assert found.metrics.idle == usual.metrics.idle
    assert found.completeness.matched == found.completeness.launches == 49
    assert found.metrics.kernels == 49


@pytest.mark.parametrize(
    ("events", "key"),
    [
        (by_id("External id"), "External id"),
        (by_id("external id"), "external id"),
        *((by_arrows(f), f) for f in "ac2g async_cpu_to_gpu async_gpu async".split()),
        (of_xla(), "correlation_id"),
        (by_id("External id", program()), ""),
        ([event for event in of_xla() if event["ph"] == "X"][:98], "correlation_id"),
    ],
    ids=lambda value: value if isinstance(value, str) else "",
)
def test_the_first_key_that_links_is_taken_and_named(
    events: Events, key: str, tmp_path: Path
) -> None:
    found = report_of(tmp_path, trace(*events))
    agrees(found, tmp_path)
    assert found.completeness.linked_by == key


@pytest.mark.parametrize(
    ("cat", "name"),
    [
        ("xpu_runtime", "urEnqueueKernelLaunch"),
        ("privateuse1_driver", "aclrtLaunchKernel"),
        ("mtia_runtime", "prepare and submit"),
        ("hpu_op", "synLaunch"),
    ],
)
def test_calls_of_other_devices_are_launches(
    cat: str, name: str, tmp_path: Path
) -> None:
    events = program(cat=cat, name=name)
    for event in events:
        if event["cat"] == "kernel" and cat == "mtia_runtime":
            event["cat"] = "mtia_ccp_events"
    agrees(report_of(tmp_path, trace(*events)), tmp_path)
    # where the end is cut off, as ever
    cut = [event for event in events if event["pid"] == 1 or event["ts"] < 500]
    assert report_of(tmp_path, trace(*cut)).verdict.kind == "unknown"


@pytest.mark.parametrize(
    "write", [json.dumps, lambda events: json.dumps(events, indent=1)]
)
def test_a_plain_list_of_events_is_read(
    write: Callable[[Events], str], tmp_path: Path
) -> None:
    found = report_of(tmp_path, write(program()).encode())
    agrees(found, tmp_path)
    assert found.gpu == "unnamed GPU"


def test_events_of_a_processs_name_are_kernels(tmp_path: Path) -> None:
    """As torch.autograd.profiler wrote them: no category, no stream, nothing links."""
    events = unlinked(name="aten::add")
    for event in events:
        event["pid"] = "CUDA functions" if event["cat"] == "kernel" else "CPU functions"
        del event["cat"], event["args"]
    found = report_of(tmp_path, json.dumps(events).encode())
    assert (found.metrics.kernels, found.gpu) == (49, "unnamed GPU")
    assert [row.name for row in found.operators] == ["aten::add"]
    assert not any("not recorded" in text for text in found.completeness.warnings)


@pytest.mark.parametrize("key", ["sycl queue", "hsa_queue"])
def test_streams_of_other_makers_are_streams(key: str, tmp_path: Path) -> None:
    events = []
    for at in range(1, 40):
        work = kernel(at, 20.0 * at + 6, name="attn_fwd.kd")
        del work["args"]["stream"]
        work["args"][key] = at % 2
        events += [call(at, 20.0 * at), work]
    found = report_of(tmp_path, trace(*events))
    assert [one.stream for one in found.metrics.streams] == [0, 1]
    assert [row.name for row in found.kernels] == ["attn_fwd"]


def test_arrows_without_end_are_looked_at_as_far_as_there_are_calls(
    tmp_path: Path,
) -> None:
    end = {"ph": "s", "cat": "ac2g", "pid": 1, "tid": 1, "ts": 20.0}
    many = [{**end, "id": at} for at in range(40_000)]
    content = trace(*many, *by_arrows("ac2g"))
    tracemalloc.start()
    found = report_of(tmp_path, content)
    _, peak = tracemalloc.get_traced_memory()
    tracemalloc.stop()
    assert found.completeness.matched == 0
    assert peak < 2_500_000


def test_ids_that_two_launches_share_link_nothing(tmp_path: Path) -> None:
    """Of an operator with two launches and one kernel nobody knows which it was."""
    events = by_id("External id")
    odd = [event for at, event in enumerate(events) if at % 4 != 3]
    found = report_of(tmp_path, trace(*odd))
    assert found.completeness.matched <= 1
    assert found.verdict.kind == "unknown"


def test_a_copy_of_unknown_memory_is_not_told_to_be_pinned(tmp_path: Path) -> None:
    events = []
    for at in range(30):
        copy = {"cat": "gpu_memcpy", "name": "Memcpy HtoD (Host -> Device)"}
        events += [
            call(at + 1, 1300.0 * at, name="hipMemcpyWithStream"),
            kernel(at + 1, 1300.0 * at + 8, **copy, dur=1250.0, args={"bytes": 2**26}),
        ]
    found = report_of(tmp_path, trace(*events))
    assert found.verdict.kind == "transfer-bound"
    words = " ".join(
        str(one) for one in (found.verdict, *found.findings, found.changes)
    )
    assert "pinned" not in words
    assert "pageable" not in words


def test_a_wait_is_for_the_stream_that_its_record_names(tmp_path: Path) -> None:
    """The host waits for a long kernel, with a short one launched last elsewhere."""
    events: Events = []
    for at in range(20):
        begin, number = 1000.0 * at, 3 * at + 1
        wait = call(number + 2, begin + 20, name="cudaStreamSynchronize", dur=890.0)
        told = {**wait, "cat": "cuda_sync", "name": "Stream Sync", "pid": 0, "tid": 7}
        told["args"] = {"correlation": number + 2, "stream": 7, "device": 0}
        events += [
            call(number, begin),
            kernel(number, begin + 6, dur=900.0),
            call(number + 1, begin + 10),
            kernel(number + 1, begin + 16, dur=800.0, args={"stream": 9}),
            wait,
            told,
        ]

    def awaited(*written: Event) -> set[int]:
        path = tmp_path / "t.json"
        path.write_bytes(trace(*written))
        waits = program_of(Trace(*read_chrome_trace(str(path)))).waits
        return set(waits.on[waits.kind == STREAM].tolist())

    assert awaited(*events) == {0}
    assert awaited(*(one for one in events if one["cat"] != "cuda_sync")) == {1}


def test_a_device_of_any_number_is_read(tmp_path: Path) -> None:
    events = of_xla()
    for event in events:
        label = event.get("args", {}).get("name", "")
        if label.startswith("/device:"):
            event["args"]["name"] = f"/device:GPU:{9**40}"
    assert report_of(tmp_path, trace(*events)).kernels


def test_kernels_of_which_only_counters_are_there_are_told_so(tmp_path: Path) -> None:
    counted = kernel(0, 100.0, cat="cuda_profiler_range", dur=900.0)
    trace_report = report_of(tmp_path, trace(call(1, 90.0), counted, counted))
    assert trace_report.verdict.kind == "unknown"
    assert "counters of 2 kernels" in trace_report.verdict.sentence


def test_a_devices_wait_is_no_kernel(tmp_path: Path) -> None:
    work = [
        kernel(1, 100.0, cat="mtia_ccp_events"),
        kernel(2, 110.0, cat="mtia_ccp_events", name="event_wait", dur=900.0),
    ]
    content = trace(call(1, 90.0, cat="mtia_runtime"), *work)
    assert report_of(tmp_path, content).metrics.gpu_busy_ns == 2_000
