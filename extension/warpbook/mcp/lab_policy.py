"""What a person's course says of assistants, and the list of their calls."""

from __future__ import annotations

import asyncio
import logging
from collections.abc import Callable, Collection, Sequence
from concurrent.futures import ThreadPoolExecutor
from contextvars import ContextVar
from dataclasses import dataclass, field
from pathlib import PurePath
from typing import TypeVar

from warpbook.ai_calls import note_ai_call
from warpbook.ai_policy import AiPolicies, LabUse
from warpbook.mcp.marked import Own
from warpbook.mcp.source import ToolError
from warpbook.protocol import KeptRecord
from warpbook_labs.lab.catalogues import lab_files

_log = logging.getLogger(__name__)
#: asks the hub when it is needed first
_POLICIES = AiPolicies()
#: a hub that does not answer holds this thread alone, and none of the server's
_ASKING = ThreadPoolExecutor(1, "ai-policy")
Told = TypeVar("Told")


@dataclass
class OpenCall:
    """A call that is being answered."""

    #: the labs that it has touched
    labs: list[str] = field(default_factory=list)
    is_noted: bool = False


_open_call: ContextVar[OpenCall | None] = ContextVar("open_call", default=None)


class LabRefused(ToolError):
    """The person's course does not let assistants do it."""


def begin_call() -> OpenCall:
    """Begin a call, whose labs `allow` adds."""
    begun = OpenCall()
    _open_call.set(begun)
    return begun


async def allow(lab: str, use: LabUse) -> None:
    """Refuse what the course does not let assistants do with a lab.

    Args:
        lab: its name in the catalogue; empty: it is of none.
        use: what is done with it.

    Raises:
        LabRefused: with the reason.
    """
    if not lab:
        return
    if (call := _open_call.get()) is not None:
        call.labs.append(lab)
    if refusal := await _asked(lambda: _POLICIES.of(lab).refusal(use)):
        raise LabRefused(Own("The person's course refuses it."), refusal)


async def refused(labs: Collection[str], use: LabUse) -> set[str]:
    """Give those labs with which assistants may not do this; "" is none."""

    def ask() -> set[str]:
        return {lab for lab in labs if lab and _POLICIES.of(lab).refusal(use)}

    return await _asked(ask)


async def _asked(ask: Callable[[], Told]) -> Told:
    return await asyncio.get_running_loop().run_in_executor(_ASKING, ask)


async def allow_file(path: str | None, use: LabUse = "see") -> None:
    """Refuse what is done with a lab's notebook or trace file as `allow` does.

    Raises:
        LabRefused: with the reason.
    """
    await allow(await asyncio.to_thread(_lab_of_file, path), use)


async def allowed_records(
    records: Sequence[KeptRecord],
) -> tuple[list[KeptRecord], str]:
    """Leave out records of labs that assistants may not see, and say so."""
    notebooks = {record.notebook for record in records}
    labs = {one: await asyncio.to_thread(_lab_of_file, one) for one in notebooks}
    hidden = await refused(set(labs.values()), "see")
    kept = [record for record in records if labs[record.notebook] not in hidden]
    return kept, left_out_words(len(records) - len(kept))


def left_out_words(count: int) -> str:
    """Say how much of labs in which assistants are off is left out; empty: nothing."""
    words = "Left out, as the person's course has assistants off in their labs: "
    return Own(f"{words}{count}.") if count else ""


def _lab_of_file(path: str | None) -> str:
    """Name the lab of a file, by its folders or its name; empty: it is of none."""
    file = PurePath(path or "")
    folders = {lab.parent.name for lab in lab_files().files}
    for name in (*reversed(file.parent.parts), file.stem):
        if name.replace("-", "_") in folders:
            return name.replace("_", "-")
    return ""


async def note_call(
    tool: str,
    lab: str,
    asked_bytes: int,
    answered_bytes: int | None,
    is_refused: bool = False,
) -> None:
    """Add a call to the person's list, once; a disk that is full stops no answer."""
    call = _open_call.get()
    if call is not None and call.is_noted:
        return
    try:
        await asyncio.to_thread(
            note_ai_call, tool, lab, asked_bytes, answered_bytes, is_refused
        )
        if call is not None:
            call.is_noted = True
    except OSError as problem:
        _log.warning("A call of an assistant was not noted: %s", problem)
