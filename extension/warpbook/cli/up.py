"""`warpbook up`: JupyterLab with the dashboard and the tour, in one command."""

from __future__ import annotations

import argparse
import importlib.util
import json
import os
import signal
import socket
import subprocess
import sys
import time
from collections.abc import Sequence
from pathlib import Path
from types import FrameType
from urllib.parse import quote, urlencode, urlsplit

from jupyter_core.paths import jupyter_runtime_dir

from warpbook.cli.output import CommandError
from warpbook_labs.lab.files import TOUR as NOTEBOOKS
from warpbook_monitors._version import __version__
from warpbook_monitors.labels import full_name
from warpbook_monitors.open_sources import (
    SHIPPED_RECORDING,
    live_sources,
    replay_sources,
)
from warpbook_monitors.plain_text import printable
from warpbook_monitors.recordings.replay import ReplaySource
from warpbook_monitors.sampling.sampler import Sampler

TOUR = "warpbook-tour.ipynb"


def add_command(commands: argparse._SubParsersAction[argparse.ArgumentParser]) -> None:
    parser = commands.add_parser(
        "up",
        help="start JupyterLab with the dashboard and the tour",
        description="Start JupyterLab with the dashboard and the tour notebook. "
        "Without a GPU a recording is played, and every view says so.",
    )
    parser.add_argument(
        "--replay", type=Path, metavar="FILE", help="play this recording as the GPU"
    )
    parser.add_argument(
        "--notebooks",
        type=Path,
        metavar="DIR",
        default=Path("notebooks"),
        help="folder that JupyterLab shows; the tour is put there (default: notebooks)",
    )
    parser.add_argument("--port", type=int, help="port to listen on (default: 8888)")
    parser.add_argument(
        "--no-browser", action="store_true", help="only print the URL, open no browser"
    )
    parser.add_argument(
        "jupyterlab",
        nargs="*",
        metavar="OPTION",
        help="options for JupyterLab itself, after --",
    )
    parser.set_defaults(run=run)


def run(options: argparse.Namespace) -> int:
    """Say what was found here, start the server, and stay until it ends."""
    if not importlib.util.find_spec("jupyterlab"):
        raise CommandError(
            "JupyterLab is not installed for this Python. "
            f"Run: {sys.executable} -m pip install 'warpbook[lab]'"
        )
    replay: Path | None = options.replay and options.replay.absolute()
    if replay:
        # refuse a bad file now, where the person sees it
        ReplaySource(replay).open()
    folder = _put_tour(options.notebooks.absolute())
    for line in _what_is_here(replay):
        print(printable(line), flush=True)
    return _serve(_command(options, replay, folder))


def _put_tour(folder: Path) -> Path:
    """Copy the tour into the folder, unless a file of its name is there."""
    try:
        folder.mkdir(parents=True, exist_ok=True)
        with (folder / TOUR).open("xb") as file:
            file.write((NOTEBOOKS / TOUR).read_bytes())
    except FileExistsError as error:
        if not folder.is_dir():
            raise CommandError(f"{folder} is not a folder.") from error
    except OSError as error:
        raise CommandError(f"{error.filename}: {error.strerror}.") from error
    return folder


def _what_is_here(replay: Path | None) -> list[str]:
    """Tell which GPU will be shown, or why none and what is played instead."""
    if replay:
        sampler = Sampler(replay_sources(replay))
    else:
        sampler = Sampler(live_sources(), stand_in=SHIPPED_RECORDING)
    sampler.open()
    sampler.close()
    gpus = [device for device in sampler.devices if device.kind == "gpu"]
    lines = [f"warpbook {__version__}"]
    for absence in sampler.absences:
        remedy = f" {absence.remedy}" if absence.remedy else ""
        lines.append(f"  {absence.what}: {absence.message}{remedy}")
    if sampler.replay is not None:
        lines.append(
            f"  Playing the recording {sampler.replay.name} "
            f"({sampler.replay.description}); every view says “replay”. "
            "CPU and memory are this machine's own."
        )
    else:
        lines += [f"  {full_name(gpu)}, live" for gpu in gpus]
    return lines


def _command(
    arguments: argparse.Namespace, replay: Path | None, folder: Path
) -> list[str]:
    ours = {
        "--ServerApp.root_dir": str(folder),
        "--LabApp.default_url": f"/lab/tree/{TOUR}",
        "--WarpbookApp.open_dashboard": "True",
    }
    if replay:
        ours["--WarpbookApp.replay_file"] = str(replay)
    if arguments.port is not None:
        ours["--ServerApp.port"] = str(arguments.port)
    if arguments.no_browser:
        ours["--ServerApp.open_browser"] = "False"
    if os.geteuid() == 0:
        ours["--ServerApp.allow_root"] = "True"
    theirs: Sequence[str] = arguments.jupyterlab
    # Jupyter refuses an option that is given twice; theirs wins
    given = {option.partition("=")[0] for option in theirs}
    if not given & {"--debug", "--log-level"}:
        # the URL is printed here; of Jupyter's own log only the warnings matter
        ours["--Application.log_level"] = "WARN"
    options = [f"{name}={value}" for name, value in ours.items() if name not in given]
    return [sys.executable, "-m", "jupyterlab", *options, *theirs]


def _serve(command: list[str]) -> int:
    """Run the server until it ends or a signal asks for that."""
    # a session of its own: Ctrl-C reaches only us, and the server is asked once
    server = subprocess.Popen(command, start_new_session=True, stdin=subprocess.DEVNULL)
    asked_to_stop = False

    def stop(signum: int, frame: FrameType | None) -> None:
        nonlocal asked_to_stop
        asked_to_stop = True
        server.terminate()

    for number in (signal.SIGINT, signal.SIGTERM, signal.SIGHUP):
        signal.signal(number, stop)
    url = _wait_for_url(server)
    if url:
        print(f"\n  Open  {url}\n  Stop  Ctrl-C\n", flush=True)
    status = server.wait()
    if asked_to_stop:
        print("warpbook stopped.", flush=True)
        return 0
    if status != 0:
        raise CommandError(f"JupyterLab ended with status {status}; see above.")
    return 0


def _wait_for_url(server: subprocess.Popen[bytes]) -> str | None:
    """Wait until the server listens; None if it ended instead."""
    info = Path(jupyter_runtime_dir(), f"jpserver-{server.pid}.json")
    while server.poll() is None:
        try:
            server_info = json.loads(info.read_text())
            # some versions write the file before they listen
            address = urlsplit(server_info["url"])
            socket.create_connection((address.hostname, address.port)).close()
        except (OSError, ValueError):
            time.sleep(0.1)
            continue
        query = (
            f"?{urlencode({'token': server_info['token']})}"
            if server_info["token"]
            else ""
        )
        # a base_url may hold spaces, or be escaped already
        place = quote(server_info["url"], safe="%:/@[]")
        return f"{place}lab/tree/{quote(TOUR)}{query}"
    return None
