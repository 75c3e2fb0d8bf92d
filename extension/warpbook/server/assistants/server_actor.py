"""What acting tools ask: put to the open pages, and done by them or by the judge."""

from __future__ import annotations

import asyncio
import contextlib
import tempfile
from collections.abc import Awaitable, Callable, Iterator, Sequence
from pathlib import Path
from typing import Literal

from msgspec import MsgspecError
from msgspec.structs import replace

from warpbook.ai_policy import LabUse
from warpbook.class_hub import NotPublished, hub_here
from warpbook.class_hub_words import receipt_rows
from warpbook.hub_client import HubProblem
from warpbook.mcp.acting import Judged, LabSource, Outcome
from warpbook.mcp.lab_policy import allow, allow_file
from warpbook.mcp.marked import Own
from warpbook.mcp.source import ToolError
from warpbook.protocol import Act, ActRequest
from warpbook.server.consent.acts import Acts
from warpbook.server.labs.labs_work import run_command
from warpbook.server.stream.kernels import RunningKernel
from warpbook_labs.errors import BadSource, LabError
from warpbook_labs.lab.catalogues import folder_of, read_lab
from warpbook_labs.lab.files import CATALOGUE, UnfitFile
from warpbook_labs.lab.languages.table import language_of
from warpbook_labs.lab.sources import read_source, refuse_unfit
from warpbook_monitors.plain_text import bounded, printable

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
        from warpbook.server.assistants.server_actor import lab_source

        await allow(lab, use)
        with _refusals():
            return await asyncio.to_thread(lab_source, lab, text, self._root)

    async def check(self, source: LabSource) -> Judged:
        from warpbook.server.assistants.server_actor import judged

        with _refusals():
            async with self._acts.judging:
                return await judged("check", source)

    async def submit(self, source: LabSource) -> Judged:
        from warpbook.server.assistants.server_actor import handed_in, judged

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


#: where opened labs are, below the folder that the server shows
_FOLDER = "labs"
_LONGEST_S = 600.0
_MOST_LINES = 2_000
_MOST_LINE = 500


def lab_source(lab: str, text: str, root: Path | None) -> LabSource:
    """Give what would be judged.

    Args:
        lab: its id in the catalogue.
        text: the source; empty is the learner's own file.
        root: the folder that the server shows.

    Raises:
        LookupError: there is no such lab.
        BadSource: there is no file, or the source is none.
        LabError: the lab can't be read.
    """
    folder = folder_of(lab)
    if folder is None:
        raise LookupError(f"There is no lab {lab!r}.")
    spec = read_lab(folder / "lab.toml")
    if text:
        refuse_unfit(text)
        return LabSource(lab, spec.title, text)
    name = language_of(spec).source_name
    file = None if root is None else root / _FOLDER / lab / name
    if file is None or not file.is_file():
        raise BadSource(
            f"There is no {_FOLDER}/{lab}/{name} below the server's folder: give the "
            "source itself."
        )
    return LabSource(lab, spec.title, read_source(file))


async def judged(action: Literal["check", "submit"], source: LabSource) -> Judged:
    """Have the command judge it in a process of its own, in the same sandbox.

    Raises:
        LabError: it could not be judged; of `submit`, it may be kept all the same.
    """
    with tempfile.TemporaryDirectory(prefix="warpbook-") as folder:
        spec = read_lab(Path(_catalogued(source.lab), "lab.toml"))
        file = Path(folder, language_of(spec).source_name)
        file.write_text(source.text, encoding="utf-8")
        # not beside the source, which a child would take for a module
        asked = (action, source.lab, str(file))
        ended = await run_command(CATALOGUE, _LONGEST_S, *asked)
    if ended.code not in (0, 1):
        raise LabError(bounded(ended.last_words or "The command failed.", _MOST_LINE))
    return Judged(ended.code == 0, _lines(ended.stdout.decode(errors="replace")))


def handed_in(source: LabSource) -> Judged | None:
    """Hand it in to the hub that started this server; None where none has the lab.

    Raises:
        HubProblem: the hub does not take it.
    """
    hub = hub_here()
    if hub is None:
        return None
    try:
        published = hub.find(source.lab)
    except NotPublished:
        # then it is practice
        return None
    receipt = hub.hand_in(published, source.text)
    state = None
    with contextlib.suppress(HubProblem):
        state = hub.state(published, receipt.submission)
    result = None if state is None else state.result
    rows = [f"{name}: {value}" for name, value in receipt_rows(receipt, state)]
    passed = None if result is None else result.facts.verdict == "right"
    return Judged(passed, _lines("\n".join(rows)))


def _catalogued(lab: str) -> Path:
    folder = folder_of(lab)
    if folder is None:
        raise LabError(f"There is no lab {lab!r}.")
    return folder


def _lines(text: str) -> tuple[str, ...]:
    lines = [bounded(printable(line), _MOST_LINE) for line in text.splitlines()]
    return tuple(line for line in lines if line.strip())[:_MOST_LINES]
