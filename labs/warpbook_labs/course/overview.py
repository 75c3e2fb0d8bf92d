"""Which labs there are, what each needs, and whether it can be done here.

It reads only `lab.toml`: no Python of a lab runs, so a server may ask, too.
"""

from __future__ import annotations

import importlib.util
from collections.abc import Mapping
from pathlib import Path
from typing import TYPE_CHECKING, Literal

from warpbook_labs.compiler import nvrtc
from warpbook_labs.errors import BadLab, NotInstalled
from warpbook_labs.lab.catalogues import lab_files, read_lab
from warpbook_labs.lab.entries import LabEntry, SoFar
from warpbook_labs.lab.files import CATALOGUE, HINT, read_file
from warpbook_labs.lab.languages.language import Here
from warpbook_labs.lab.languages.table import language_of
from warpbook_labs.lab.spec import Lab
from warpbook_monitors.errors import MonitorError
from warpbook_monitors.nvml.gate import call

if TYPE_CHECKING:
    from warpbook_labs.course.progress import Progress
from collections.abc import Sequence


def next_lab(labs: Sequence[LabEntry], after: str = "") -> LabEntry | None:
    """Return the next lab that is not passed and can be checked here; None if none is.

    Args:
        labs: in the order in which they are done.
        after: the id of a lab; if left out, the last that is passed.
    """
    left = (lab for lab in _left(labs, after) if lab.id != after)
    return next((lab for lab in left if lab.can_check), None)


def skipped_words(labs: Sequence[LabEntry]) -> str:
    """Name the labs before the next one that can't be checked here, with the reasons.

    Args:
        labs: in the order in which they are done.

    Returns:
        A sentence; empty where none is skipped.
    """
    by_reason: dict[str, list[str]] = {}
    for lab in _left(labs):
        if lab.can_check:
            break
        by_reason.setdefault(lab.why, []).append(f"{lab.number} {lab.title}")
    return " ".join(
        f"Skipped, as it can't be checked here: {', '.join(names)}. {reason}"
        for reason, names in by_reason.items()
    )


def _left(labs: Sequence[LabEntry], after: str = "") -> list[LabEntry]:
    """Return those not passed: what follows `after` or the last pass, then the rest."""
    begin = 0
    for place, lab in enumerate(labs, 1):
        is_passed = lab.progress is not None and lab.progress.state == "passed"
        if lab.id == after or (is_passed and not after):
            begin = place
    in_turn = (*labs[begin:], *labs[:begin])
    return [lab for lab in in_turn if lab.progress and lab.progress.state != "passed"]


def look_here(gpus_here: int | None = None) -> Here:
    """See what is there; loading the compiler takes a moment.

    Args:
        gpus_here: how many GPUs there are; NVML is asked if left out.
    """
    compiler, remedy = None, ""
    try:
        compiler = nvrtc.version()
    except NotInstalled as problem:
        remedy = str(problem)
    return Here(
        compiler,
        remedy,
        importlib.util.find_spec("triton") is not None,
        importlib.util.find_spec("torch") is not None,
        gpus() if gpus_here is None else gpus_here,
    )


def gpus() -> int:
    """Count the GPUs that a driver tells of."""
    try:
        return int(call("nvmlDeviceGetCount"))
    except MonitorError:
        return 0


def speed_words(here: Here) -> str:
    """Say, once for all labs, that speed is not graded here; empty where it is."""
    if here.gpus:
        return ""
    return "There is no GPU here: results are checked, speed is not graded."


def so_far(kept: Mapping[str, Progress]) -> dict[str, SoFar]:
    """Say of each lab that was begun how far the person is."""
    return {name: _so_far(progress) for name, progress in kept.items()}


def _so_far(kept: Progress) -> SoFar:
    best = kept.best
    if best is None:
        state: Literal["begun", "passed", "tried"] = "begun"
        return SoFar(state, kept.attempts, kept.hints)
    state = "passed" if best.passed else "tried"
    return SoFar(state, kept.attempts, kept.hints, best.right, best.of)


def hints_of(folder: Path) -> tuple[str, ...]:
    """Read a lab's hints, without loading it."""
    text = read_file(folder / "hints.md")
    return tuple(part.strip() for part in text.split(HINT))


def overview(
    here: Here, progress: dict[str, SoFar] | None, catalogue: Path | None = None
) -> tuple[tuple[LabEntry, ...], tuple[str, ...]]:
    """List the labs, and what is wrong with others.

    They come in the order of their numbers, those of other packages after ours.

    Args:
        here: what there is to check them with.
        progress: by lab; None if it can't be read.
        catalogue: where labs are; all that are installed if left out.
    """
    entries = []
    files, problems = lab_files(catalogue)
    for file in files:
        try:
            lab = read_lab(file)
        except BadLab as problem:
            problems = (*problems, str(problem))
            continue
        so_far = None if progress is None else progress.get(lab.id, SoFar())
        is_ours = file.is_relative_to(CATALOGUE)
        entries.append((not is_ours, lab.number, _entry(lab, here, so_far)))
    entries.sort(key=lambda entry: entry[:2])
    return tuple(entry for *_, entry in entries), problems


def _entry(lab: Lab, here: Here, progress: SoFar | None) -> LabEntry:
    language = language_of(lab)
    missing = language.missing(lab, here)
    needed = language.needs(lab)
    return LabEntry(
        lab.id,
        lab.number,
        lab.title,
        lab.track,
        lab.language,
        lab.minutes,
        lab.difficulty,
        " ".join(lab.goal.split()),
        lab.after,
        needed if lab.speed is None else (*needed, "a GPU for speed"),
        not missing,
        missing or language.limits(lab, here),
        progress,
    )
