"""What a tool is, and how a call of one is checked and answered."""

from __future__ import annotations

import logging
from collections.abc import Awaitable, Callable, Iterable, Mapping
from dataclasses import dataclass
from typing import Annotated, Any, Generic, TypeVar

import msgspec
from msgspec import Meta, Struct

from warpbook.mcp.answer import (
    DEFAULT_TOKENS,
    LEAST_TOKENS,
    MOST_TOKENS,
    Answer,
    encoded,
    fitted,
)
from warpbook.mcp.lab_policy import LabRefused, begin_call, note_call
from warpbook.mcp.source import Source, ToolError
from warpbook_monitors.plain_text import bounded

_log = logging.getLogger(__name__)
_MOST_PROBLEM = 400


class Arguments(Struct, frozen=True, forbid_unknown_fields=True, kw_only=True):
    """What every tool takes."""

    tokens: Annotated[
        int,
        Meta(
            ge=LEAST_TOKENS,
            le=MOST_TOKENS,
            description="Most tokens of the answer, counted as two bytes each.",
        ),
    ] = DEFAULT_TOKENS
    cursor: Annotated[
        str,
        Meta(
            pattern="^[0-9]{1,6}$",
            description="Of the answer before, for the rows that follow it.",
        ),
    ] = "0"


A = TypeVar("A", bound=Arguments)


@dataclass(frozen=True)
class Tool(Generic[A]):
    """One tool."""

    name: str
    #: for the assistant: what it answers, and when to ask
    description: str
    arguments: type[A]
    answer: Callable[[Source, A], Awaitable[Answer]]
    #: nothing is changed by it
    is_reading: bool = True

    def schema(self) -> dict[str, Any]:
        """Describe the arguments as JSON Schema, an object."""
        (_,), parts = msgspec.json.schema_components(
            [self.arguments], ref_template="#/$defs/{name}"
        )
        described: dict[str, Any] = parts.pop(self.arguments.__name__)
        if parts:
            described["$defs"] = parts
        return described


Tools = Mapping[str, Tool[Any]]


def by_name(tools: Iterable[Tool[Any]]) -> Tools:
    return {tool.name: tool for tool in tools}


async def call(
    tools: Tools, source: Source, name: str, arguments: Mapping[str, object]
) -> dict[str, object]:
    """Answer one call.

    Raises:
        ToolError: there is no answer, with the reason in words.
    """
    tool = tools.get(name)
    if tool is None:
        raise ToolError(f"There is no such tool; there are {', '.join(tools)}.")
    try:
        # models write numbers as texts now and then
        asked = msgspec.convert(dict(arguments), tool.arguments, strict=False)
    except (msgspec.ValidationError, RecursionError) as problem:
        words = bounded(str(problem), _MOST_PROBLEM)
        said = f"The arguments of {tool.name} can't be used:"
        raise ToolError(said, words) from None
    begun, is_refused, answered = begin_call(), False, ""
    try:
        answer = await tool.answer(source, asked)
        document = {
            "from": str(source.name),
            **fitted(answer, int(asked.cursor), asked.tokens),
        }
        answered = encoded(document)
        return document
    except ToolError as problem:
        is_refused, answered = isinstance(problem, LabRefused), str(problem)
        raise
    except Exception:  # noqa: BLE001 - any fault is an error in words for the caller
        _log.exception("The tool %s failed.", tool.name)
        raise ToolError(
            "It failed by a fault of warpbook, which is in the log of the program "
            "that answers."
        ) from None
    finally:
        # lists of several labs are about none
        lab = begun.labs[0] if len(set(begun.labs)) == 1 else ""
        lab = getattr(asked, "lab", lab)
        sizes = (
            len(encoded(arguments).encode(errors="replace")),
            len(answered.encode(errors="replace")),
        )
        await note_call(tool.name, lab, *sizes, is_refused)
