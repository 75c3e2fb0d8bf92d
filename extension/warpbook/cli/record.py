"""`warpbook record`: the stream of this machine, into a file."""

from __future__ import annotations

import argparse
import math
import queue
import signal
import sys
import time
from collections.abc import Callable
from pathlib import Path
from types import FrameType

from warpbook.cli.output import CommandError
from warpbook_monitors._version import __version__
from warpbook_monitors.frames import PROTOCOL_VERSION, Hello
from warpbook_monitors.labels import full_name
from warpbook_monitors.open_sources import live_sources
from warpbook_monitors.plain_text import joined
from warpbook_monitors.recordings.recording import RecordingWriter
from warpbook_monitors.sampling.sampler import BASE_RATE_HZ, Message, Sampler

MIN_RATE_HZ = 0.1
MAX_SECONDS = 7 * 86400.0


def add_command(commands: argparse._SubParsersAction[argparse.ArgumentParser]) -> None:
    parser = commands.add_parser(
        "record",
        help="record this machine's GPUs into a file",
        description="Record what the GPUs and the host do, until Ctrl-C. "
        "Play it with `warpbook up --replay FILE`.",
    )
    parser.add_argument("file", type=Path, metavar="FILE", help="a new .jsonl.gz file")
    parser.add_argument(
        "--seconds",
        type=_number(0.1, MAX_SECONDS, "a number from 0.1 to a week of seconds"),
        metavar="N",
        help="end by itself after N seconds",
    )
    parser.add_argument(
        "--rate",
        type=_number(
            MIN_RATE_HZ,
            BASE_RATE_HZ,
            f"a number from {MIN_RATE_HZ} to {BASE_RATE_HZ:g}",
        ),
        metavar="HZ",
        default=BASE_RATE_HZ,
        help=f"frames per second, {MIN_RATE_HZ} to {BASE_RATE_HZ:g} (the default)",
    )
    parser.add_argument(
        "--label", metavar="TEXT", help="what the machine is doing, kept in each frame"
    )
    parser.add_argument(
        "--host-only", action="store_true", help="record although there is no GPU"
    )
    parser.set_defaults(run=run)


def run(options: argparse.Namespace) -> int:
    """Record until the time is over or a signal comes, and tell what there is."""
    sampler = Sampler(live_sources(), rate_hz=options.rate)
    sampler.label = options.label
    sampler.open()
    try:
        gpus = [device for device in sampler.devices if device.kind == "gpu"]
        if not gpus and not options.host_only:
            reasons = " ".join(
                f"{absence.what}: {absence.message}" for absence in sampler.absences
            )
            raise CommandError(
                f"No GPU to record. {reasons} "
                "Use --host-only to record CPU and memory alone."
            )
        frames, seconds = _record(sampler, options.file, options.seconds)
    except FileExistsError as error:
        raise CommandError(
            f"{options.file} is there already, and a recording is never written over."
        ) from error
    except OSError as error:
        kept = " What was written before is readable." if options.file.exists() else ""
        raise CommandError(
            f"{options.file}: {error.strerror or error}.{kept}"
        ) from error
    finally:
        sampler.close()
    what = ", ".join(full_name(gpu) for gpu in gpus) or "the host alone"
    size_kb = options.file.stat().st_size / 1000
    print(joined([f"Recorded {frames} frames in {seconds:.1f} s of {what}."]))
    print(f"{options.file}: {size_kb:.0f} kB")
    if gpus:
        print(f"Play it: warpbook up --replay {options.file}")
    return 0


def _record(sampler: Sampler, file: Path, seconds: float | None) -> tuple[int, float]:
    """Write the stream; give the number of frames and the seconds it took."""
    # None ends it: a signal must not break into the writing of a line
    messages: queue.SimpleQueue[Message | None] = queue.SimpleQueue()

    def stop(signum: int, frame: FrameType | None) -> None:
        messages.put(None)

    for number in (signal.SIGINT, signal.SIGTERM, signal.SIGHUP):
        signal.signal(number, stop)
    hello = Hello(
        protocol=PROTOCOL_VERSION,
        version=__version__,
        time_ms=time.time_ns() // 1000 / 1000,
        rate_hz=sampler.rate_hz,
        devices=sampler.devices,
        absences=sampler.absences,
    )
    with RecordingWriter(file, hello) as writer:
        print(f"Recording to {file}; Ctrl-C ends it.", flush=True)
        begin_s = time.monotonic()
        end_s = begin_s + (seconds or math.inf)
        stop_listening = sampler.listen(messages.put)
        with sampler.watch("record"):
            while (now_s := time.monotonic()) < end_s:
                wait_s = min(end_s - now_s, 60)
                try:
                    message = messages.get(timeout=wait_s)
                except queue.Empty:
                    continue
                if message is None:
                    break
                writer.write(message)
                _show_progress(f"{now_s - begin_s:5.0f} s  {writer.frames} frames")
        stop_listening()
        _show_progress("\n")
        return writer.frames, time.monotonic() - begin_s


def _show_progress(text: str) -> None:
    """One line that is written over, on a terminal only."""
    if sys.stdout.isatty():
        print(f"\r{text}", end="", flush=True)


def _number(least: float, most: float, words: str) -> Callable[[str], float]:
    """Make a type for argparse; NaN lies nowhere."""

    def convert(text: str) -> float:
        try:
            value = float(text)
        except ValueError:
            value = math.nan
        if not least <= value <= most:
            raise argparse.ArgumentTypeError(f"{text[:20]!r} is not {words}")
        return value

    return convert
