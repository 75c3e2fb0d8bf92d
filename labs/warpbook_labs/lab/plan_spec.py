"""What a plan lab asks for: functions, and how many answers must be right."""

from __future__ import annotations

from typing import Annotated, Any, Literal

from msgspec import Meta, Struct

from warpbook_labs.sandbox.limits import Limits

#: what functions that only compute may want, all calls of a check together
PLAN_LIMITS = Limits(processor_s=15, asleep_s=20.0, memory_bytes=1 << 30)
#: a schedule: rows of whole numbers
ROWS = "list[list[int]]"
#: what a function may be asked to return, by its name in `lab.toml`
RESULTS: dict[str, Any] = {
    "bool": bool,
    "int": int,
    "float": float,
    "str": str,
    "list[int]": list[int],
    "list[float]": list[float],
    "list[str]": list[str],
    ROWS: list[list[int]],
    "dict[str, int]": dict[str, int],
    "dict[str, float]": dict[str, float],
}
_Name = Annotated[str, Meta(pattern=r"^[a-z][a-z0-9_]{0,31}$")]


class Argument(Struct, frozen=True, forbid_unknown_fields=True):
    """One argument of a function, in its place."""

    name: _Name
    about: Annotated[str, Meta(min_length=1, max_length=1000)]


class Function(Struct, frozen=True, forbid_unknown_fields=True):
    """One function that the learner writes."""

    name: _Name
    about: Annotated[str, Meta(min_length=1, max_length=2000)]
    arguments: Annotated[tuple[Argument, ...], Meta(min_length=1, max_length=8)]
    returns: Literal[
        "bool",
        "int",
        "float",
        "str",
        "list[int]",
        "list[float]",
        "list[str]",
        "list[list[int]]",
        "dict[str, int]",
        "dict[str, float]",
    ]
    #: of its questions, so many must be answered right
    share: Annotated[float, Meta(gt=0, le=1)] = 1.0
    #: it is called step by step, and `advance` of the lab says what comes next
    is_dialogue: bool = False


class Plan(Struct, frozen=True, forbid_unknown_fields=True):
    """Functions that are asked questions, each with data of its own."""

    functions: Annotated[tuple[Function, ...], Meta(min_length=1, max_length=8)]
    #: the questions that the learner sees are drawn from it
    seed: int = 0
    #: each call may take so long
    call_s: Annotated[float, Meta(gt=0, le=5)] = 1.0
