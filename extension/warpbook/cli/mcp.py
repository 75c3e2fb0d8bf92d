"""`warpbook mcp`: tools for assistants over stdin and stdout."""

from __future__ import annotations

import argparse
import asyncio
import importlib.util
import os
from collections.abc import AsyncIterator, Sequence
from contextlib import asynccontextmanager
from functools import partial
from pathlib import Path
from urllib.parse import urlsplit

from warpbook.cli.output import CommandError
from warpbook.mcp.marked import Own
from warpbook.mcp.source import ToolError
from warpbook.protocol import CellReport, KeptRecord
from warpbook.server.assistants.server_source import ServerParts, ServerSource
from warpbook.server.cells.receipts import Receipts
from warpbook.server.memory.attribution import Attribution
from warpbook.server.memory.holder_watch import HolderWatch
from warpbook.server.past.history import Past
from warpbook.server.records.records import Records
from warpbook.server.records.reports import Reports
from warpbook.server.records.timelines import Timelines
from warpbook.server.reports.trace_files import TraceFiles
from warpbook.server.stream.broadcast import Broadcaster
from warpbook.server.stream.kernels import RunningKernel
from warpbook_monitors.history.history import History
from warpbook_monitors.open_sources import SHIPPED_RECORDING, live_sources
from warpbook_monitors.sampling.own_cost import Costs, OwnCostSource
from warpbook_monitors.sampling.sampler import BASE_RATE_HZ, Sampler

#: Jupyter's own name for it
TOKEN = "JUPYTER_TOKEN"


def add_command(commands: argparse._SubParsersAction[argparse.ArgumentParser]) -> None:
    parser = commands.add_parser(
        "mcp",
        help="give an assistant tools that read GPUs, cells and traces",
        description="Speak the Model Context Protocol on stdin and stdout, for an "
        "editor or assistant that starts this command. With --server the tools are "
        "those of a Jupyter server; without it they read this machine's GPUs and trace "
        "files. Nothing listens on a port.",
    )
    parser.add_argument(
        "--server",
        nargs="?",
        const="",
        metavar="URL",
        help="of a Jupyter server with warpbook; the one that this account runs if URL "
        f"is left out. Its token is in {TOKEN}, or found as `jupyter server list` "
        "finds it",
    )
    parser.add_argument(
        "--folder",
        type=Path,
        action="append",
        metavar="FOLDER",
        help="without --server: of trace files that may be read, with those below it; "
        "once or more, the current folder if left out",
    )
    parser.set_defaults(run=run, parser=parser)


def run(options: argparse.Namespace) -> int:
    if options.server is not None and options.folder:
        options.parser.error("--folder is for this machine, without --server")
    if importlib.util.find_spec("mcp") is None:
        raise CommandError("Install the tools first: pip install 'warpbook[mcp]'")
    if options.server is None:
        folders = options.folder or [Path.cwd()]
        for folder in folders:
            if not folder.is_dir():
                raise CommandError(f"{folder} is no folder.")
        asyncio.run(_own(folders))
    else:
        asyncio.run(_forward(*_server(options.server)))
    return 0


async def _own(folders: list[Path]) -> None:
    from warpbook.cli.mcp import own_machine
    from warpbook.mcp.forward import over_pipe
    from warpbook.mcp.protocol_server import protocol_server
    from warpbook.mcp.tools import READING_TOOLS

    async with own_machine(folders) as source:
        await over_pipe(protocol_server(READING_TOOLS, lambda _: source))


async def _forward(url: str, token: str) -> None:
    from warpbook.mcp.forward import NoServer, forwarding, over_pipe

    try:
        async with forwarding(url, token) as server:
            await over_pipe(server)
    except NoServer as problem:
        raise CommandError(str(problem)) from None


def _server(url: str) -> tuple[str, str]:
    """Find a server's address, with a slash at its end, and its token.

    Raises:
        CommandError: which one is meant is not known, or its token is not.
    """
    from jupyter_server.serverapp import list_running_servers

    parts = urlsplit(url)
    if parts.query or parts.username:
        raise CommandError(
            f"Everybody here sees a command line: put the token into {TOKEN}."
        )
    running = {server["url"]: server["token"] for server in list_running_servers()}
    if not url:
        if len(running) != 1:
            found = ", ".join(running) or "none"
            raise CommandError(f"Which server? Give its URL. Running here: {found}.")
        (url,) = running
    if urlsplit(url).scheme not in ("http", "https"):
        raise CommandError("The URL of a server begins with http:// or https://.")
    url = url.rstrip("/") + "/"
    token = os.environ.get(TOKEN) or running.get(url)
    if not token:
        raise CommandError(f"The token of {url} is not known: put it into {TOKEN}.")
    return url, token


#: nobody looks at the past, or zooms into a timeline
_HISTORY_S, _HISTORY_BYTES = 60.0, 32 << 20
_TIMELINES_BYTES = 64 << 20
#: as those of a Jupyter server
_TRACE_BYTES, _TRACE_S = 1024 << 20, 120.0
_CELLS = (
    "Cells are known to a Jupyter server alone, and none is asked here: start "
    "`warpbook mcp --server`. A trace file can be named."
)


class OwnMachine(ServerSource):
    """Knows GPUs and trace files, and no cells."""

    async def records(
        self, text: str, notebook: str | None, most: int
    ) -> tuple[Sequence[KeptRecord], str]:
        raise ToolError(_CELLS)

    async def newest_report(self) -> CellReport:
        raise ToolError(_CELLS)


@asynccontextmanager
async def own_machine(folders: Sequence[Path]) -> AsyncIterator[OwnMachine]:
    """Open this machine as a source, to the block's end.

    Args:
        folders: whose trace files may be read, with those below them.
    """
    costs = Costs()
    sampler = Sampler(
        [*live_sources(), OwnCostSource(costs)],
        BASE_RATE_HZ,
        costs,
        stand_in=SHIPPED_RECORDING,
    )
    history = History(_HISTORY_S, BASE_RATE_HZ, _HISTORY_BYTES)
    broadcaster = Broadcaster(sampler, history, costs)
    records = Records()
    reports = Reports(records)
    timelines = Timelines(reports, _TIMELINES_BYTES, records)
    past = Past(broadcaster)
    # in a terminal of a hub whose users may share one account
    attribution = Attribution(False, os.environ.get("JUPYTERHUB_USER"))
    holders = HolderWatch(broadcaster, _no_kernels, attribution, costs)
    parts = ServerParts(
        broadcaster,
        past,
        reports,
        records,
        Receipts(past, holders, records),
        TraceFiles(reports, timelines, _TRACE_BYTES, _TRACE_S),
    )
    find = partial(_found, [folder.resolve() for folder in folders])
    name = Own("this machine, without a Jupyter server")
    try:
        yield OwnMachine(parts, find, None, name)
    finally:
        await holders.close()
        await broadcaster.close()


async def _no_kernels() -> Sequence[RunningKernel]:
    return ()


async def _found(folders: Sequence[Path], path: str) -> tuple[str, Path]:
    """Find a file in one of the folders; links lead nowhere else.

    Raises:
        ToolError: it is in none of them.
    """
    for folder in folders:
        try:
            file = (folder / path).resolve()
            if file.is_relative_to(folder) and file.is_file():
                return str(file.relative_to(folder)), file
        except (OSError, RuntimeError, ValueError):
            # a loop of links, or a name that no file can have
            continue
    raise ToolError(
        "There is no such file in the folders that may be read, which `warpbook mcp "
        "--folder` names."
    )
