"""The tools as functions for Jupyter AI, by the entry point of `jupyter_server_mcp`.

That package listens on loopback and asks nobody for a password, so nothing is offered
unless `WarpbookApp.jupyter_ai_tools` says so.
"""

from __future__ import annotations

import inspect
from collections.abc import Awaitable, Callable
from typing import Any, get_type_hints

import msgspec

from warpbook.mcp.answer import encoded
from warpbook.mcp.source import Source, ToolError
from warpbook.mcp.tool import call
from warpbook.mcp.tools import READING_TOOLS

Answered = Callable[..., Awaitable[str]]

#: where answers come from, once a server offers them; a process has one server
_sources: list[Source] = []


def offer(source: Source) -> None:
    """Have the tools offered from now on."""
    _sources[:] = [source]


def tools() -> list[str]:
    """Name the functions, as the entry point wants them; none unless offered."""
    return [f"{__name__}:{name}" for name in READING_TOOLS] if _sources else []


def __getattr__(name: str) -> Answered:
    """Give a tool as a function of its arguments.

    Raises:
        AttributeError: there is no such tool.
    """
    if name not in READING_TOOLS:
        raise AttributeError(name)

    async def answered(**arguments: object) -> str:
        if not _sources:
            return "This server offers no tools."
        given = {key: value for key, value in arguments.items() if value is not None}
        try:
            return encoded(await call(READING_TOOLS, _sources[0], name, given))
        except ToolError as problem:
            return str(problem)

    answered.__name__ = name
    answered.__doc__ = READING_TOOLS[name].description
    parameters = _parameters(READING_TOOLS[name].arguments)
    signature = inspect.Signature(parameters, return_annotation=str)
    vars(answered)["__signature__"] = signature
    answered.__annotations__ = {
        **{each.name: each.annotation for each in parameters},
        "return": str,
    }
    return answered


def _parameters(arguments: type[msgspec.Struct]) -> list[inspect.Parameter]:
    hints = get_type_hints(arguments)
    return [
        inspect.Parameter(
            field.name,
            inspect.Parameter.KEYWORD_ONLY,
            default=inspect.Parameter.empty if field.required else _default(field),
            annotation=_plain(hints[field.name]),
        )
        for field in msgspec.structs.fields(arguments)
    ]


def _default(field: msgspec.structs.FieldInfo) -> Any:
    is_made = field.default is msgspec.NODEFAULT
    return None if is_made else field.default


def _plain(kind: object) -> Any:
    """Give a type that others know: a plan is a mapping of its options."""
    is_struct = isinstance(kind, type) and issubclass(kind, msgspec.Struct)
    return dict[str, Any] | None if is_struct else kind
