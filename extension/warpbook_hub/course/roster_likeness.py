"""What of a roster is probably meant to be one: people, sections and teams."""

from __future__ import annotations

import re
from collections import defaultdict
from collections.abc import Callable, Iterable, Iterator, Sequence

from warpbook_hub.course.courses import Member
from warpbook_hub.course.roster_columns import key_of
from warpbook_hub.course.roster_csv import RosterRow

_MOST_NOTES = 30
_MOST_NAMES = 10


def alike(rows: Sequence[RosterRow], there: Iterable[Member]) -> tuple[str, ...]:
    """Say which names differ in little, and which addresses are of several people.

    Args:
        rows: of a roster.
        there: who is in the course; what the roster says of them is in its place.
    """
    named = {row.username for row in rows}
    people: list[RosterRow | Member] = [*rows]
    people += [one for one in there if one.username not in named]
    notes = [
        *_spellings("sections", (one.section for one in people)),
        *_spellings("teams", (one.team for one in people)),
        *_shared("one e-mail address", people, _email),
        *_shared("one name, but for case and accents,", people, _name),
    ]
    more = len(notes) - _MOST_NOTES
    return (*notes[:_MOST_NOTES], *([f"and {more:,} more"] if more > 0 else []))


def _spellings(what: str, names: Iterable[str | None]) -> Iterator[str]:
    by_key: dict[str, set[str]] = defaultdict(set)
    for name in names:
        if name:
            by_key[key_of(name) or name].add(name)
    for spelled in by_key.values():
        if len(spelled) > 1:
            words = f"{what} that differ in case, accents or signs alone"
            yield f"{words}: {_listed(sorted(spelled))}"


def _shared(
    what: str,
    people: Iterable[RosterRow | Member],
    key: Callable[[RosterRow | Member], str],
) -> Iterator[str]:
    # each once: a line that comes twice is still one person
    by_key: dict[str, dict[str, None]] = defaultdict(dict)
    for one in people:
        if key(one):
            by_key[key(one)][one.username] = None
    for usernames in by_key.values():
        if len(usernames) > 1:
            yield f"{what} of several people: {_listed([*usernames])}"


def _email(one: RosterRow | Member) -> str:
    return (one.email or "").casefold()


def _name(one: RosterRow | Member) -> str:
    """Write a whole name so that Müller, Muller and MUELLER are equal."""
    if not (one.first_name and one.last_name):
        return ""
    return re.sub("(?<=[aou])e", "", key_of(f"{one.first_name} {one.last_name}"))


def _listed(names: Sequence[str]) -> str:
    more = len(names) - _MOST_NAMES
    return ", ".join(names[:_MOST_NAMES]) + (f" and {more:,} more" if more > 0 else "")
