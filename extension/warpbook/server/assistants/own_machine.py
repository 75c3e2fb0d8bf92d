"""This machine without a Jupyter server: its GPUs, and trace files of some folders."""

from __future__ import annotations

import os
from collections.abc import AsyncIterator, Sequence
from contextlib import asynccontextmanager
from functools import partial
from pathlib import Path

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
