"""What acting tools ask: put to the open pages, and done by them or by the judge."""

from __future__ import annotations

import asyncio
import contextlib
from collections.abc import Awaitable, Callable, Iterator, Sequence
from pathlib import Path

from msgspec import MsgspecError
from msgspec.structs import replace

from warpbook.ai_policy import LabUse
from warpbook.hub_client import HubProblem
from warpbook.mcp.acting import Judged, LabSource, Outcome
from warpbook.mcp.lab_policy import allow, allow_file
from warpbook.mcp.marked import Own
from warpbook.mcp.source import ToolError
from warpbook.protocol import Act, ActRequest
from warpbook.server.consent.acts import Acts
from warpbook.server.stream.kernels import RunningKernel
from warpbook_labs.errors import LabError
from warpbook_labs.lab.files import UnfitFile
from warpbook_monitors.plain_text import bounded

_MOST_NAME = 60
#: what an act is of a lab whose notebook it is in
_USES: dict[Act, LabUse] = {
    "profile_cell": "see",
    "try_change": "see",
    "apply_change": "teach",
}

Kernels = Callable[[], Awaitable[Sequence[RunningKernel]]]


class ServerActor:
    """Acts for one request of an assistant."""

    def __init__(
        self,
        acts: Acts,
        kernels: Kernels,
        root: Path | None,
        assistant: str,
        may_act: Callable[[], Awaitable[bool]],
    ) -> None:
        """Take who acts.

        Args:
            acts: puts requests to the pages.
            kernels: lists those of this server.
            root: the folder of files that the server shows; None where there is none.
            assistant: what it calls itself.
            may_act: tells whether who asks may run code on this server.
        """
        self._acts = acts
        self._kernels = kernels
        self._root = root
        self._assistant = bounded(assistant, _MOST_NAME)
        self._may_act = may_act

    async def kernel(self, notebook: str) -> str:
        for kernel in await self._kernels():
            if kernel.notebook == notebook:
                return kernel.id
        raise ToolError(
            "No kernel of this server runs for this notebook: have the person open it. "
            "cells gives the paths of those that ran."
        )

    async def act(self, request: ActRequest, run_s: float) -> Outcome:
        if not await self._may_act():
            raise ToolError("Who asks may not run code on this server.")
        for kernel in await self._kernels() if request.kernel_id else ():
            if kernel.id == request.kernel_id:
                path = (self._root or Path()) / kernel.notebook
                await allow_file(str(path), _USES[request.act])
        asked = replace(request, assistant=self._assistant)
        return await self._acts.ask(asked, run_s)

    async def lab_source(self, lab: str, text: str, use: LabUse) -> LabSource:
        from warpbook.server.labs.judging import lab_source

        await allow(lab, use)
        with _refusals():
            return await asyncio.to_thread(lab_source, lab, text, self._root)

    async def check(self, source: LabSource) -> Judged:
        from warpbook.server.labs.judging import judged

        with _refusals():
            async with self._acts.judging:
                return await judged("check", source)

    async def submit(self, source: LabSource) -> Judged:
        from warpbook.server.labs.judging import handed_in, judged

        with _refusals():
            async with self._acts.judging:
                taken = await asyncio.to_thread(handed_in, source)
                return taken or await judged("submit", source)


@contextlib.contextmanager
def _refusals() -> Iterator[None]:
    try:
        yield
    except (
        LabError,
        UnfitFile,
        HubProblem,
        MsgspecError,
        LookupError,
        OSError,
    ) as problem:
        raise ToolError(Own("That can't be judged:"), str(problem)) from None
