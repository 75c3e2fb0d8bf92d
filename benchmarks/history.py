"""An hour of eight GPUs: its memory beside a plain ring, and what asking it costs.

    python benchmarks/history.py [--write docs/benchmarks.md]

The frames are made from the recording that ships with warpbook: eight GPUs that play
it from different places, with 60 metrics each (its 22, and more of its columns from
other places). The baseline is what one would write first: a deque of the encoded
frames. Each is filled in a process of its own, whose memory is compared with that
before. Then the hour is asked for as a server does it, with an event loop that has a
timer to serve each 10 ms: how late the timer is, is what others would feel.
"""

from __future__ import annotations

import argparse
import asyncio
import gc
import json
import subprocess
import sys
import time
from collections import deque
from collections.abc import Awaitable, Callable, Iterator
from pathlib import Path

import msgspec
import psutil

ROOT = Path(__file__).resolve().parent.parent
sys.path[:0] = [str(ROOT), str(ROOT / "extension"), str(ROOT / "monitors")]

from benchmarks.report import put_section
from warpbook.server.stream.selection import Pace, Selection, encode
from warpbook.server.stream_socket import pack
from warpbook_monitors.frames import Device, Frame, Reading
from warpbook_monitors.history.detail import in_steps
from warpbook_monitors.history.export import to_csv
from warpbook_monitors.history.history import History
from warpbook_monitors.history.readings import read_frames, read_seconds
from warpbook_monitors.history.seconds import Seconds
from warpbook_monitors.history.span_statistics import device_span
from warpbook_monitors.recordings.recording import read_recording
from warpbook_monitors.recordings.replay import SHIPPED

GPUS = 8
METRICS = 60
HOUR_S = 3600
RATE_HZ = 10
BEGIN_MS = 1.8e12
END_MS = BEGIN_MS + 1000 * HOUR_S
_TIMER_S = 0.01
HEADING = "An hour of history"


def devices() -> tuple[Device, ...]:
    """Eight GPUs like the recorded ones, with 60 metrics each."""
    recorded = read_recording(SHIPPED).hello.devices[0]
    metrics = [
        msgspec.structs.replace(
            metric, name=f"{metric.name}_{turn}" if turn else metric.name
        )
        for turn in range(3)
        for metric in recorded.metrics
    ]
    return tuple(
        msgspec.structs.replace(
            recorded, id=f"gpu:{at}", index=at, metrics=tuple(metrics[:METRICS])
        )
        for at in range(GPUS)
    )


def frames() -> Iterator[Frame]:
    """An hour of them, at 10 Hz."""
    recorded = [
        [reading.values for reading in frame.readings]
        for frame in read_recording(SHIPPED).frames
    ]
    for seq in range(HOUR_S * RATE_HZ):
        readings = []
        for gpu in range(GPUS):
            values: tuple[float | None, ...] = ()
            for turn in range(3):
                place = (seq + 61 * gpu + 149 * turn) % len(recorded)
                values += recorded[place][gpu % 2]
            readings.append(Reading(gpu, "ok", values[:METRICS]))
        yield Frame(seq, BEGIN_MS + 100.0 * (seq + 1) + seq % 7 / 10, tuple(readings))


def fill(keep: Callable[[Frame, bytes], None]) -> dict[str, float]:
    """Feed an hour; give the memory it took and what keeping a frame cost."""
    gc.collect()
    process = psutil.Process()
    before = process.memory_info().rss
    costs_us = []
    for frame in frames():
        encoded = encode(frame)
        begun_ns = time.thread_time_ns()
        keep(frame, encoded)
        costs_us.append((time.thread_time_ns() - begun_ns) / 1000)
    gc.collect()
    costs_us.sort()
    return {
        "memory_mib": (process.memory_info().rss - before) / 2**20,
        "mean_us": sum(costs_us) / len(costs_us),
        "p999_us": costs_us[int(0.999 * len(costs_us))],
    }


async def timed(work: Callable[[], Awaitable[object]]) -> dict[str, float]:
    """Do it while a timer runs on the same loop; how long, and how late the timer."""
    late_ms: list[float] = []

    async def tick() -> None:
        while True:
            due_s = time.perf_counter() + _TIMER_S
            await asyncio.sleep(_TIMER_S)
            late_ms.append(1000 * (time.perf_counter() - due_s))

    timer = asyncio.create_task(tick())
    await asyncio.sleep(0.1)
    late_ms.clear()
    begun_s = time.perf_counter()
    await work()
    elapsed_s = time.perf_counter() - begun_s
    await asyncio.sleep(_TIMER_S)
    timer.cancel()
    late_ms.sort()
    return {
        "seconds": elapsed_s,
        "p95_ms": late_ms[int(0.95 * (len(late_ms) - 1))],
        "worst_ms": late_ms[-1],
    }


async def answer_times(
    history: History, seconds: Seconds
) -> dict[str, dict[str, float]]:
    """Ask for the hour in each of the ways that a server is asked."""
    whole = dict(enumerate(devices()))
    one = {3: whole[3]}

    async def catch_up(rate_hz: float) -> None:
        number = history.after(0)
        pace, selection = Pace(rate_hz, RATE_HZ), Selection(rate_hz, None)
        while (piece := history.piece(number)) is not None:
            await asyncio.to_thread(pack, piece, number, selection, pace)
            number = piece.end

    def detail() -> None:
        rows = seconds.span(BEGIN_MS, END_MS)
        in_steps(read_seconds(rows, one)[3], range(6), BEGIN_MS, 4000.0, 900)

    def detail_of_minutes() -> None:
        messages = history.entries(END_MS - 300e3, END_MS)
        readings = read_frames(messages, one)[3]
        in_steps(readings, range(6), END_MS - 300e3, 300.0, 1000)

    def span() -> None:
        rows = read_seconds(seconds.span(BEGIN_MS, END_MS), whole)
        for at, device in whole.items():
            device_span(device, rows[at], BEGIN_MS, END_MS)

    def csv() -> None:
        for _ in to_csv(devices(), history.entries(BEGIN_MS, END_MS)):
            pass

    async def nothing() -> None:
        await asyncio.sleep(2)

    return {
        "nothing": await timed(nothing),
        "catch-up of all frames (`since_ms`)": await timed(lambda: catch_up(RATE_HZ)),
        "detail: the hour, six metrics of one GPU, 900 steps": await timed(
            lambda: asyncio.to_thread(detail)
        ),
        "detail: the last five minutes, 1000 steps": await timed(
            lambda: asyncio.to_thread(detail_of_minutes)
        ),
        "span: the hour, all eight GPUs": await timed(lambda: asyncio.to_thread(span)),
        "export of the hour as CSV": await timed(lambda: asyncio.to_thread(csv)),
    }


def child(contender: str) -> None:
    """Fill one, and print what it took as JSON."""
    if contender == "plain":
        ring: deque[tuple[float, bytes]] = deque(maxlen=HOUR_S * RATE_HZ)
        figures = {"fill": fill(lambda frame, e: ring.append((frame.time_ms, e)))}
    else:
        history, seconds, known = History(HOUR_S, RATE_HZ), Seconds(HOUR_S), devices()

        def keep(frame: Frame, encoded: bytes) -> None:
            history.append(frame.time_ms, encoded)
            seconds.take(frame, known)

        figures = {"fill": fill(keep)}
        figures["fill"]["frames_mib"] = history.size_bytes / 2**20
        figures["fill"]["seconds_mib"] = seconds.size_bytes / 2**20
        peak = psutil.Process().memory_info().rss
        figures |= asyncio.run(answer_times(history, seconds))
        grown = psutil.Process().memory_info().rss - peak
        figures["fill"]["asking_mib"] = grown / 2**20
    print(json.dumps(figures))


def run(contender: str) -> dict[str, dict[str, float]]:
    """Measure one in a process of its own."""
    done = subprocess.run(
        [sys.executable, __file__, "--child", contender],
        check=True,
        stdout=subprocess.PIPE,
        text=True,
    )
    figures: dict[str, dict[str, float]] = json.loads(done.stdout)
    return figures


def report(
    plain: dict[str, dict[str, float]], ours: dict[str, dict[str, float]]
) -> str:
    """The two tables."""
    lines = [
        "| kept as | memory MiB | processor µs a frame: mean | 99.9 % below |",
        "|---|---|---|---|",
    ]
    for name, figures in (("a deque of encoded frames", plain), ("warpbook", ours)):
        fill_ = figures["fill"]
        lines.append(
            f"| {name} | {fill_['memory_mib']:.0f} | {fill_['mean_us']:.0f} "
            f"| {fill_['p999_us']:.0f} |"
        )
    mine = ours["fill"]
    lines += [
        "",
        f"Of warpbook's, {mine['frames_mib']:.0f} MiB are the frames at full "
        f"resolution and {mine['seconds_mib']:.0f} MiB the summary of each second "
        "(least, mean and most), which is made with each tenth frame; the rest is "
        "Python's. Answering all of the questions below, one after the other, left the "
        f"process {mine['asking_mib']:.0f} MiB larger.",
        "",
        "| asked for | takes s | a timer on the event loop is late: p95 ms "
        "| worst ms |",
        "|---|---|---|---|",
    ]
    for name, figures in ours.items():
        if name != "fill":
            lines.append(
                f"| {name} | {figures['seconds']:.2f} | {figures['p95_ms']:.1f} "
                f"| {figures['worst_ms']:.1f} |"
            )
    return "\n".join(lines)


def main() -> None:
    """Measure both and print the tables."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--child", help=argparse.SUPPRESS)
    parser.add_argument("--write", type=Path, help="put the section into this file")
    options = parser.parse_args()
    if options.child:
        child(options.child)
        return
    text = report(run("plain"), run("warpbook"))
    print(text)
    if options.write:
        read = f"Eight GPUs with {METRICS} metrics each at {RATE_HZ} Hz.\n\n"
        command = "python benchmarks/history.py"
        put_section(options.write, HEADING, command, read + text)


if __name__ == "__main__":
    main()
