"""A source of a lab, judged as a learner's is: by the command, or by a course's hub."""

from __future__ import annotations

import contextlib
import tempfile
from pathlib import Path
from typing import Literal

from warpbook.class_hub import NotPublished, hub_here
from warpbook.class_hub_words import receipt_rows
from warpbook.hub_client import HubProblem
from warpbook.mcp.acting import Judged, LabSource
from warpbook.server.labs.labs_work import run_command
from warpbook_labs.errors import BadSource, LabError
from warpbook_labs.lab.catalogues import folder_of, read_lab
from warpbook_labs.lab.files import CATALOGUE
from warpbook_labs.lab.languages.table import language_of
from warpbook_labs.lab.sources import read_source, refuse_unfit
from warpbook_monitors.plain_text import bounded, printable

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
