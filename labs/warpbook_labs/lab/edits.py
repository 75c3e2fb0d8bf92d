"""Sources that differ from another one in a few places, told as these differences."""

from __future__ import annotations

from collections.abc import Iterable
from typing import Annotated, Literal

import msgspec
from msgspec import Meta, Struct

from warpbook_monitors import toml_text

_Text = Annotated[str, Meta(min_length=1, max_length=20_000)]


class Edit(Struct, frozen=True, forbid_unknown_fields=True):
    """One place that is another one."""

    #: is in the source exactly once
    old: _Text
    new: str


class Edited(Struct, frozen=True, forbid_unknown_fields=True):
    """A source, told by what is different in it."""

    name: Annotated[str, Meta(pattern=r"^[a-z0-9_]{1,80}$")]
    #: why it is wrong, or how it is right, in words
    reason: _Text
    edits: Annotated[tuple[Edit, ...], Meta(min_length=1)]
    #: a correct solution, without its ending; "" is the reference
    base: str = ""


class EditedFile(Struct, frozen=True, forbid_unknown_fields=True):
    """What is in `solutions/correct.toml` or `solutions/wrong.toml`."""

    correct: tuple[Edited, ...] = ()
    wrong: tuple[Edited, ...] = ()


class BadEdit(ValueError):
    """An edit does not fit its source; the message says which."""


def read_edited(
    text: str, kind: Literal["correct", "wrong"], sources: dict[str, str]
) -> dict[str, str]:
    """Give the sources that a file of a kind tells of, by name.

    Args:
        sources: what they are made of, by name; "" is the reference.

    Raises:
        BadEdit: the text is none of this kind, or an edit does not fit.
    """
    try:
        held = toml_text.decode(text, EditedFile)
    except msgspec.DecodeError as problem:
        raise BadEdit(str(problem)) from None
    of_kind = held.correct if kind == "correct" else held.wrong
    if len(of_kind) != len(held.correct) + len(held.wrong):
        raise BadEdit(f"All of its entries must be `[[{kind}]]`.")
    edited_sources: dict[str, str] = {}
    for entry in of_kind:
        if entry.base not in sources:
            raise BadEdit(f"{entry.name}: there is no source `{entry.base}`.")
        if entry.name in edited_sources:
            raise BadEdit(f"{entry.name}: two have this name.")
        try:
            edited_sources[entry.name] = edited(sources[entry.base], entry.edits)
        except BadEdit as problem:
            raise BadEdit(f"{entry.name}: {problem}") from None
    return edited_sources


def edited(source: str, edits: Iterable[Edit]) -> str:
    """Give a source with some places changed.

    Raises:
        BadEdit: one is not there, or more than once.
    """
    for edit in edits:
        times = source.count(edit.old)
        if times != 1:
            first = edit.old.strip().splitlines()[0]
            raise BadEdit(f"`{first}` is there {times} times, not once.")
        source = source.replace(edit.old, edit.new)
    return source
