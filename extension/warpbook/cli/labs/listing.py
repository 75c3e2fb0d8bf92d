"""`warpbook labs list`: nothing that grades is loaded, so that it takes a moment."""

from __future__ import annotations

import argparse
from collections.abc import Sequence
from typing import Any

import msgspec

from warpbook.cli.output import print_json
from warpbook_labs.cards.words import how_far
from warpbook_labs.course.overview import look_here, next_lab, overview, so_far
from warpbook_labs.course.progress import (
    Progress,
    damaged_results,
    read_progress,
    submissions_file,
)
from warpbook_labs.course.reading import read_texts
from warpbook_labs.errors import NoGpu
from warpbook_labs.gpu.gpu import find_gpu
from warpbook_labs.lab.entries import LabEntry
from warpbook_labs.sandbox.work import isolation_words
from warpbook_monitors.plain_text import bounded, joined


def show(options: argparse.Namespace) -> int:
    """Tell the labs, what they need, and how far the person is."""
    here, path = look_here(), submissions_file()
    progress = read_progress(path) if path.exists() else {}
    labs, problems = overview(here, so_far(progress))
    texts = [text.entry for text in read_texts()]
    if path.exists():
        problems = (*problems, *damaged_results(path))
    if options.json:
        print_json(
            {
                "labs": [_row(lab, progress.get(lab.id, Progress())) for lab in labs],
                "texts": texts,
                "compiler": here.compiler,
                "gpus": here.gpus,
                "remedy": here.remedy,
                "problems": problems,
            }
        )
        return 0
    rows = [("", "lab", "track", "title", "minutes", "level", "needs", "you")]
    for lab in labs:
        far = how_far(lab.progress)
        needs = ", ".join(lab.needs)
        level = lab.difficulty or ""
        cells = (lab.id, lab.track, lab.title, str(lab.minutes), level, needs, far)
        rows.append((str(lab.number), *cells))
    lines = [*left(rows), "", "Texts: warpbook labs open TEXT"]
    lines += left([("", text.id, f"{text.minutes} min", text.title) for text in texts])
    lines.append("")
    if here.compiler is None:
        lines.append(f"They can be read here, but not checked: {here.remedy}")
    else:
        lines.append(
            f"Results are checked here: NVRTC {here.compiler} and an interpreter."
        )
    words = isolation_words("namespaces", True)
    lines.append(f"Your source runs {words}. A result says so where that is not had.")
    missing = [lab for lab in labs if not lab.can_check and lab.why != here.remedy]
    lines += [f"{lab.id} can't be checked here. {lab.why}" for lab in missing]
    lines += [_gpu_words(), *problems]
    following = next_lab(labs)
    if following is not None:
        lines.append(f"Next: {following.title}: warpbook labs open {following.id}")
    print(joined(lines))
    return 0


def _row(lab: LabEntry, progress: Progress) -> dict[str, Any]:
    fields: dict[str, Any] = msgspec.to_builtins(lab)
    return {**fields, "progress": progress}


def left(rows: Sequence[tuple[str, ...]]) -> list[str]:
    """Write rows of text as lines, each column to the left."""
    widths = [max(map(len, column)) for column in zip(*rows, strict=True)]
    return [
        "  ".join(
            cell.ljust(width) for cell, width in zip(row, widths, strict=True)
        ).rstrip()
        for row in rows
    ]


def _gpu_words() -> str:
    try:
        gpu = find_gpu()
    except NoGpu as problem:
        return f"Speed is not graded here, where no GPU can be used: {problem}"
    return f"Kernels are run on {bounded(gpu.name)} too, and timed when you submit."
