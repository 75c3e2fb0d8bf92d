"""A day of a GPU that works, in minutes, with twenty kills: nothing kept is lost."""

from __future__ import annotations

import random
import subprocess
import sys
import threading
import time
from pathlib import Path

import numpy as np
import pytest

from tests.gpu.used_gpu import used_position
from warpbook_monitors.archive.archive import Archive
from warpbook_monitors.archive.frame_table import FrameTable
from warpbook_monitors.archive.lookup import archived_messages, read_archive
from warpbook_monitors.archive.steps import MINUTE, SECOND
from warpbook_monitors.archive.summaries import seconds_of
from warpbook_monitors.archive.table import Table, pack
from warpbook_monitors.frames import Device, Frame
from warpbook_monitors.open_sources import live_sources
from warpbook_monitors.sampling.sampler import Sampler

pytestmark = pytest.mark.gpu

ROOT = Path(__file__).parents[2]
KILLS = 20
#: frames written for each that the GPU gives: a day in some 200 s
FACTOR = 432
SECONDS_EACH = 10.0
DAY_MS = 86_400_000.0
BEGIN_MS = 1_800_000_000_000.0 // DAY_MS * DAY_MS
#: a flush each 0.9 s, and a kill in the middle of one
LOST_S = 2.0


def work(stop: threading.Event) -> None:
    """Keep the GPU busy with what changes: products, copies, and nothing."""
    import torch

    a = torch.randn(8192, 8192, device="cuda", dtype=torch.bfloat16)
    host = torch.empty(2**28, dtype=torch.uint8, pin_memory=True)
    dice = random.Random(0)
    while not stop.is_set():
        for _ in range(dice.randrange(20)):
            a @ a
        host.cuda(non_blocking=True)
        torch.cuda.synchronize()
        time.sleep(dice.random() * 0.2)


@pytest.fixture
def busy_gpu():
    stop = threading.Event()
    thread = threading.Thread(target=work, args=(stop,))
    thread.start()
    yield
    stop.set()
    thread.join(60)


def run_until_killed(folder: Path, begin_ms: float, seconds: float) -> list[str]:
    """Let a child write, kill it after so long, and give what it has said."""
    child = subprocess.Popen(
        [
            *(sys.executable, "-m", "tests.gpu.archive_child"),
            *(str(folder), str(begin_ms), str(FACTOR)),
        ],
        cwd=ROOT,
        stdout=subprocess.PIPE,
        text=True,
    )
    assert child.stdout is not None
    lines = [child.stdout.readline()]
    timer = threading.Timer(seconds, child.kill)
    timer.start()
    lines += child.stdout.readlines()
    child.stdout.close()
    child.wait()
    timer.join()
    return [line for line in lines if line.endswith("\n")]


def test_a_day_and_twenty_kills(busy_gpu, tmp_path: Path) -> None:
    dice = random.Random(20)
    acknowledged: list[str] = []
    told_ms: list[float] = []
    lost_s: list[float] = []
    begin_ms = BEGIN_MS
    for _ in range(KILLS):
        lines = run_until_killed(tmp_path, begin_ms, SECONDS_EACH + dice.random() * 2)
        assert any(line.startswith("frame") for line in lines), lines
        acknowledged += [line.split()[1] for line in lines if line[0] == "r"]
        frames = [line.split()[1:] for line in lines if line[0] == "f"]
        newest_ms = newest_kept_ms(tmp_path)
        late = [float(at_s) for at_s, time_ms in frames if float(time_ms) > newest_ms]
        lost_s.append(float(frames[-1][0]) - late[0] if late else 0.0)
        told_ms += [float(time_ms) for _, time_ms in frames]
        begin_ms = told_ms[-1] + 1000
    devices = present_devices()
    used = used_position(devices)
    archive = Archive(tmp_path)
    with archive.reading() as connection:
        kept = {row[0] for row in connection.execute("SELECT id FROM record")}
        span = (BEGIN_MS, begin_ms)
        gpu = {used: devices[used]}
        seconds = read_archive(connection, *span, gpu, SECOND)[used]
        begun_s = time.perf_counter()
        minutes = read_archive(connection, *span, gpu, MINUTE)[used]
        minutes_s = time.perf_counter() - begun_s
        part = archived_messages(connection, BEGIN_MS, BEGIN_MS + 60_050, devices)
        frames_of_minute = sum(isinstance(message, Frame) for message in part)
    lost = set(acknowledged) - kept
    hours = (begin_ms - BEGIN_MS) / 3_600_000
    at = [metric.name for metric in devices[used].metrics].index("power_watts")
    print()
    print("| kills | hours | records acknowledged | lost | longest tail lost, s |")
    print("|---|---|---|---|---|")
    print(
        f"| {KILLS} | {hours:.1f} | {len(acknowledged)} | {len(lost)} "
        f"| {max(lost_s):.2f} |"
    )
    print()
    print(f"A day in minutes, of one GPU with all metrics: {minutes_s:.3f} s.")
    assert not lost
    assert max(lost_s) < LOST_S
    assert hours > 20
    assert frames_of_minute == 600
    assert (np.diff(seconds.ends_ms) > 0).all()
    assert np.isfinite(minutes.mean[:, at]).mean() > 0.99
    assert np.nanmax(seconds.most[:, at]) > 150, "it has worked"


@pytest.mark.timeout(600)
def test_what_five_busy_minutes_take_of_a_disk(busy_gpu) -> None:
    frames: list[Frame] = []
    sampler = Sampler(live_sources())
    sampler.open()
    sampler.listen(lambda m: frames.append(m) if isinstance(m, Frame) else None)
    with sampler.watch("size"):
        time.sleep(300)
    devices = sampler.devices
    sampler.close()
    gpus = [device for device in devices if device.kind == "gpu"]
    table = FrameTable(devices)
    begun_s = time.thread_time()
    for begin in range(0, len(frames), 10):
        table.append(frames[begin : begin + 10])
    whole = table.table()
    seconds = seconds_of(whole, devices)
    sizes = [
        len(pack(of_gpus(some_frames, gpus, devices)))
        for some_frames in (whole, seconds)
    ]
    cpu_s = time.thread_time() - begun_s
    to_a_day = DAY_MS / (frames[-1].time_ms - frames[0].time_ms) / len(gpus) * 8 / 1e6
    print()
    print("| frames | metrics | frames, MB | seconds, MB | CPU, % of a core |")
    print("|---|---|---|---|---|")
    print(
        f"| {len(frames)} | {len(gpus[0].metrics)} | {sizes[0] * to_a_day:.0f} "
        f"| {sizes[1] * to_a_day:.0f} | {cpu_s / 300 / len(gpus) * 8 * 100:.2f} |"
    )
    print()
    print("The last three are of a day of eight such GPUs at 10 Hz.")
    assert sum(sizes) * to_a_day < 250


def of_gpus(table: Table, gpus: list[Device], devices: tuple[Device, ...]) -> Table:
    """The columns of the GPUs, without the host's, of which there is one."""
    places = {f"{devices.index(gpu)}" for gpu in gpus}
    return table.only(n for n in table.columns if n.partition(" ")[0] in places)


def newest_kept_ms(folder: Path) -> float:
    with Archive(folder).reading() as connection:
        (newest_ms,) = connection.execute("SELECT max(to_ms) FROM recent").fetchone()
        (stored_ms,) = connection.execute("SELECT max(to_ms) FROM segment").fetchone()
    return max(newest_ms or 0.0, stored_ms or 0.0)


def present_devices() -> tuple[Device, ...]:
    sampler = Sampler(live_sources())
    sampler.open()
    sampler.close()
    return sampler.devices
