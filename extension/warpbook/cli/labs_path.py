"""`warpbook labs path`: learning paths, how far the person is, and what is next."""

from __future__ import annotations

import argparse
from collections.abc import Iterator

from warpbook.cli.json_output import print_json
from warpbook.cli.labs_list import left
from warpbook_labs.cards.progress import how_far
from warpbook_labs.course.next_lab import next_lab, skipped_words
from warpbook_labs.course.overview import look_here, overview, so_far
from warpbook_labs.course.paths import (
    LabPath,
    along,
    choose_path,
    chosen_path,
    find_path,
    path_entry,
    read_paths,
    unmet,
)
from warpbook_labs.course.progress import read_progress, submissions_file
from warpbook_labs.course.reading import find_text
from warpbook_labs.lab.entries import LabEntry, PathEntry
from warpbook_monitors.plain_text import joined


def show(options: argparse.Namespace) -> int:
    """Tell all paths, or one lab by lab; note the choice where one is made.

    Raises:
        StoreError: how far the person is can't be read.
        NoPath: there is none of that name.
        BadPath: one can't be used.
        OSError: the choice can't be kept.
    """
    if options.choose or options.clear:
        choose_path(options.name or "")
    file = submissions_file()
    labs, _ = overview(
        look_here(), so_far(read_progress(file) if file.exists() else {})
    )
    chosen = chosen_path()
    if options.name:
        path = find_path(options.name)
        lines, entries = _one(path, chosen, labs), [path_entry(path, labs)]
        following = _next_on(path, labs)
    else:
        entries = [path_entry(path, labs) for path in read_paths()]
        lines = _all(entries, chosen)
        following = next_lab(along(chosen, labs))
    if options.json:
        print_json(
            {
                "paths": entries,
                "path": None if chosen is None else chosen.id,
                "next_lab": None if following is None else following.id,
            }
        )
    else:
        print(joined(lines))
    return 0


def _all(entries: list[PathEntry], chosen: LabPath | None) -> Iterator[str]:
    rows = [("", "path", "title", "labs", "minutes", "you")]
    for path in entries:
        is_chosen = chosen is not None and path.id == chosen.id
        of = sum(len(part.labs) for part in path.parts)
        far = f"{path.passed} of {of} passed"
        mark = "*" if is_chosen else ""
        rows.append((mark, path.id, path.title, str(of), str(path.minutes), far))
    yield from left(rows)
    yield ""
    if chosen is None:
        yield "What is on one: warpbook labs path NAME"
    else:
        yield f"* You follow it: warpbook labs path {chosen.id}"


def _one(
    path: LabPath, chosen: LabPath | None, labs: tuple[LabEntry, ...]
) -> Iterator[str]:
    entry, following = path_entry(path, labs), _next_on(path, labs)
    by_id = {lab.id: lab for lab in labs}
    yield f"{path.title}. {path.about}"
    yield (
        f"About {entry.minutes} minutes, {entry.minutes_left} of them left; "
        f"{entry.passed} of {len(path.labs)} labs are passed."
    )
    rows = [_row(by_id[name], following, labs) for name in path.labs if name in by_id]
    lines = dict(zip([row[2] for row in rows], left(rows), strict=True))
    for part in path.parts:
        minutes = sum(by_id[name].minutes for name in part.labs if name in by_id)
        yield ""
        yield f"{part.title} ({minutes} minutes)"
        yield from (f"  {lines[name]}" for name in part.labs if name in lines)
        yield from (
            f"  then the text {text.title}, {text.minutes} min: "
            f"warpbook labs open {text.id}"
            for text in map(find_text, part.texts)
        )
    yield ""
    if following is None:
        yield "No lab is left on it that is not passed and can be checked here."
    else:
        yield f"Next: {following.title}: warpbook labs open {following.id}"
    on_path = [by_id[name] for name in path.labs if name in by_id]
    yield from filter(None, [skipped_words(on_path)])
    if chosen is None or chosen.id != path.id:
        yield f"To follow it: warpbook labs path {path.id} --choose"
    else:
        yield "You follow it. To follow none: warpbook labs path --clear"


def _row(
    lab: LabEntry, following: LabEntry | None, labs: tuple[LabEntry, ...]
) -> tuple[str, ...]:
    is_next = following is not None and lab.id == following.id
    needed = unmet(lab, labs)
    return (
        "->" if is_next else "",
        how_far(lab.progress),
        lab.id,
        f"{lab.minutes} min",
        f"after {', '.join(needed)}" if needed else "",
    )


def _next_on(path: LabPath, labs: tuple[LabEntry, ...]) -> LabEntry | None:
    """Give the next lab of a path; None once all are passed that can be checked."""
    return next_lab([lab for lab in along(path, labs) if lab.id in path.labs])
