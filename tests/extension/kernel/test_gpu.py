"""`%gpu`: the state in text, from the server or read by the kernel itself."""

import time
from collections.abc import Callable
from typing import Any

import msgspec
import pytest

from tests.stub_nvml import NOT_SUPPORTED, StubNvml
from warpbook.protocol import (
    PROTOCOL_VERSION,
    DeviceHolders,
    Holder,
    MemoryOutlook,
    StateNow,
    Verdict,
)
from warpbook_monitors import metrics
from warpbook_monitors.frames import Absence, Device, Frame, Reading, Replay

NAMES = ("sm_active_ratio", "gpu_utilization_ratio", "memory_used_bytes")


def printed(shell: Any) -> str:
    assert shell.run_cell("%gpu").success
    return str(shell.display_pub.outputs[-1]["data"]["text/plain"])


def state(
    *readings: Reading, origin: Any = "live", absences: tuple[Absence, ...] = ()
) -> StateNow:
    kinds = {**metrics.NVML, **metrics.GPM}
    gpu = Device(
        id="gpu:1",
        kind="gpu",
        name="NVIDIA H200",
        index=0,
        origin=origin,
        metrics=tuple(kinds[name].on_device() for name in NAMES),
        facts={"memory_total_bytes": 150 * 2**30},
    )
    replay = Replay("h200", 1.79e12, 60_000, "") if origin == "replay" else None
    frame = Frame(1, time.time() * 1e3, readings) if readings else None
    return StateNow(PROTOCOL_VERSION, "0.1.0", (gpu,), absences, replay, frame)


def test_with_a_server_its_figures_are_printed(shell: Any, ingest: Any) -> None:
    ingest.answer_state(state(Reading(0, "ok", (0.003, 1.0, 12 * 2**30))))
    text = printed(shell)
    lines = text.splitlines()
    assert lines[0] == "GPU 0: NVIDIA H200, 150 GiB"
    row = lines[3].split()
    assert row == [
        "GPU",
        "0",
        "0.3",
        "%",
        "—",
        "—",
        "100",
        "%",
        "12.0",
        "GiB",
        "—",
        "—",
    ]
    assert "\ntensor, DRAM, power, temp on GPU 0: not read on this GPU.\n" in text
    assert metrics.UTILIZATION_NOTE in text
    assert text.endswith("Read by the Jupyter server.")


def test_a_page_gets_the_same_as_a_table(shell: Any, ingest: Any) -> None:
    hostile = DeviceHolders(
        (Holder("program", "<img src=x>", 2**30, (7,)),), None, ("<b>note</b>",)
    )
    now = state(Reading(0, "ok", (0.003, 1.0, 12 * 2**30)))
    ingest.answer_state(msgspec.structs.replace(now, holders={"gpu:1": hostile}))
    text = printed(shell)
    html = shell.display_pub.outputs[-1]["data"]["text/html"]
    assert html.count("<table") == 1 and html.count("<tr>") == 2
    for shown in ("GPU 0", "0.3 %", "12.0 GiB", "Read by the Jupyter server."):
        assert shown in text and shown in html
    assert "<img" not in html and "<b>" not in html
    assert "&lt;img src=x&gt;" in html and "&lt;b&gt;note" in html


def test_the_servers_verdict_is_printed(shell: Any, ingest: Any) -> None:
    verdict = Verdict("host-bound", "The GPU waits for the host.", "SM active 3 %")
    now = state(Reading(0, "ok", (0.03, 0.4, 1.0)))
    ingest.answer_state(msgspec.structs.replace(now, verdicts={"gpu:1": verdict}))
    assert "GPU 0: The GPU waits for the host." in printed(shell)


def test_who_holds_memory_is_printed(shell: Any, ingest: Any) -> None:
    held = DeviceHolders(
        (
            Holder(
                kind="kernel",
                name="train\x1b[2J.ipynb",
                used_bytes=10 * 2**30,
                kernel_id="k",
                execution_state="idle",
                idle_s=7300.0,
                allocated_bytes=6 * 2**30,
                reserved_bytes=9 * 2**30,
            ),
            Holder("program", "python train.py", 2**30, (77,)),
            Holder("other_users", "other users", None),
        ),
        600 * 2**20,
        ("The driver reports no PID for a process.",),
    )
    now = state(Reading(0, "ok", (0.5, 1.0, 12.0 * 2**30)))
    ingest.answer_state(msgspec.structs.replace(now, holders={"gpu:1": held}))
    text = printed(shell)
    assert text[text.index("Memory of") :].splitlines()[:6] == [
        "Memory of GPU 0:",
        "  10.0 GiB  train?[2J.ipynb, idle for 2 h, torch uses 6.00 GiB of 9.00 GiB",
        "  1.00 GiB  python train.py (process 77)",
        "   unknown  other users",
        "   600 MiB  not attributed (driver, and unknown)",
        "  The driver reports no PID for a process.",
    ]


@pytest.mark.parametrize("slope", [2.0**30, -(2.0**30), None])
def test_the_outlook_is_printed_if_memory_grows(
    shell: Any, ingest: Any, slope: float | None
) -> None:
    outlook = MemoryOutlook(1, 2, slope, None, "It is so.")
    now = state(Reading(0, "ok", (0.5, 1.0, 1.0)))
    ingest.answer_state(msgspec.structs.replace(now, outlook={"gpu:1": outlook}))
    assert ("GPU 0: It is so." in printed(shell)) == (slope == 2.0**30)


def test_alike_gpus_and_their_instances_are_told_apart(shell: Any, ingest: Any) -> None:
    one = state(Reading(0, "ok", (0.5, 1.0, 1.0)))
    (gpu,) = one.devices
    second = msgspec.structs.replace(gpu, id="gpu:2", index=1)
    instance = msgspec.structs.replace(
        gpu,
        id="mig:3",
        kind="mig",
        index=None,
        name="NVIDIA H200 MIG 1g.18gb",
        facts={"parent": "gpu:2", "gpu_instance_id": 7},
    )
    ingest.answer_state(msgspec.structs.replace(one, devices=(gpu, second, instance)))
    lines = printed(shell).splitlines()
    assert lines[:2] == [
        "GPU 0, 1: NVIDIA H200, 150 GiB",
        "MIG 1:7: NVIDIA H200 MIG 1g.18gb",
    ]
    assert any(line.startswith("MIG 1:7  ") for line in lines)


def test_a_replay_says_so(shell: Any, ingest: Any) -> None:
    reading = Reading(0, "ok", (0.5, 1.0, 1.0))
    ingest.answer_state(state(reading, origin="replay"))
    first, *rest = printed(shell).splitlines()
    assert first.startswith("REPLAY of h200")
    assert "not this machine's GPU" in first
    assert "GPU 0: NVIDIA H200, 150 GiB (REPLAY)" in rest


@pytest.mark.parametrize(
    ("readings", "words"),
    [
        ((), "not read yet"),
        ((Reading(0, "lost", why="It fell off the bus."),), "lost. It fell off"),
        ((Reading(0, "stale", why="No answer for 3 s."),), "stale. No answer"),
        ((Reading(0, "ok", (None, 1.0, 1.0)),), "SM on GPU 0: no reading just now"),
    ],
)
def test_what_is_not_known_is_said_and_never_zero(
    shell: Any, ingest: Any, readings: tuple[Reading, ...], words: str
) -> None:
    ingest.answer_state(state(*readings))
    text = printed(shell)
    assert words in text
    assert "0 %" not in text.replace("100 %", "")


def test_absences_are_told_in_words(shell: Any, ingest: Any) -> None:
    absence = Absence("GPM on GPU 0", "not_supported", "It needs Hopper.", "Use one.")
    ingest.answer_state(state(absences=(absence,)))
    assert "GPM on GPU 0: It needs Hopper. Use one." in printed(shell)


def test_without_a_server_the_kernel_reads_the_gpu(
    shell: Any, make_stub_nvml: Callable[..., StubNvml]
) -> None:
    make_stub_nvml("h200", "a100")
    text = printed(shell)
    names, rows = text.splitlines()[:2], text.splitlines()[4:6]
    assert "H200" in names[0] and "—" not in rows[0]
    assert "A100" in names[1] and rows[1].count("—") == 3
    assert "SM, tensor, DRAM on GPU 1: not supported" in text
    assert "Read here, in the kernel. No Jupyter server with warpbook" in text


def test_on_a_big_node_each_reason_is_told_once_and_no_line_is_too_wide(
    shell: Any, make_stub_nvml: Callable[..., StubNvml]
) -> None:
    stub = make_stub_nvml("h200", "h200", "a100", "a100")
    for split in (0, 1):
        stub.set(split, mig=1)
        stub.fault("nvmlGpmSampleGet", rc=NOT_SUPPORTED, gpu=split)
        stub.make_instance(split, 0)
        stub.make_instance(split, 1)
    lines = printed(shell).splitlines()
    begin = lines.index("") + 1
    assert max(len(line) for line in lines[begin : begin + 9]) <= 60
    missing = [line for line in lines if " on GPU" in line or " on MIG" in line]
    assert [line.partition(":")[0] for line in missing] == [
        "SM, tensor, DRAM, util on GPU 0, 1",
        "SM, tensor, DRAM on GPU 2, 3",
        "util, power, temp on MIG 0",
    ]
    assert "MIG is on: NVML gives this for the MIG instances" in missing[0]
    assert "nvmlGpm" not in "".join(lines)


def test_without_a_gpu_the_reason_is_printed(
    shell: Any, monkeypatch: pytest.MonkeyPatch
) -> None:
    text = printed(shell)
    assert text.startswith("No GPU.\n\nNVML: ")
    assert "Host: CPU" in text


def test_a_server_of_another_version_is_told_and_the_kernel_reads(
    shell: Any, ingest: Any
) -> None:
    ingest.state = b'{"protocol": 99, "version": "9.0"}'
    text = printed(shell)
    assert "warpbook 9.0 (protocol 99)" in text
    assert "in this kernel's environment" in text
    ingest.state = b'{"protocol": 0, "version": "0.0.1"}'
    assert "in the Jupyter server's environment" in printed(shell)


def test_arguments_are_refused(shell: Any) -> None:
    assert not shell.run_cell("%gpu now").success
