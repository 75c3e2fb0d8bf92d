"""A lab as a notebook: its idea, the starter, and a cell for each step.

Its picture is a file beside it, since Jupyter shows no SVG that is attached.
"""

from __future__ import annotations

import contextlib
import json
import re
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from warpbook_labs.errors import BadLab, BadSource
from warpbook_labs.lab.files import UnfitFile, read_file
from warpbook_labs.lab.host_spec import Host
from warpbook_labs.lab.languages.table import language_of
from warpbook_labs.lab.loaded import GIVEN, LoadedLab
from warpbook_labs.lab.sources import read_source, without_cell_line
from warpbook_labs.lab.spec import PLAN_LIMITS, Function, Lab, Parameter, Plan
from warpbook_labs.lab.texts import figures


@dataclass(frozen=True)
class Opened:
    """Where the learner's files of a lab are."""

    source: Path
    notebook: Path


def open_lab(loaded: LoadedLab, place: Path) -> Opened:
    """Put what a learner needs into a folder; what is there already stays as it is."""
    place.mkdir(parents=True, exist_ok=True)
    source = place / language_of(loaded.lab).source_name
    _put(source, loaded.starter)
    # on a terminal there is no notebook that has it
    _put(place / "text.md", f"{loaded.text.rstrip()}\n\n{task_words(loaded)}\n")
    if loaded.given:
        _put(place / GIVEN, loaded.given)
    for name in figures(loaded.text):
        _put(place / name, _figure(loaded.folder / name))
    # who has begun on a terminal goes on with the same source
    held = loaded.starter
    with contextlib.suppress(BadSource):
        held = without_cell_line(read_source(source))
    written = place / f"{loaded.lab.id}.ipynb"
    _put(written, notebook(loaded, held))
    return Opened(source, written)


def _figure(file: Path) -> str:
    try:
        return read_file(file)
    except UnfitFile as problem:
        raise BadLab(str(problem)) from None


def _put(file: Path, text: str) -> None:
    with contextlib.suppress(FileExistsError), file.open("x", encoding="utf-8") as kept:
        kept.write(text)


Cell = dict[str, Any]


def notebook_json(cells: Sequence[Cell], name: str) -> str:
    """Write a notebook.

    Args:
        cells: from `words_cell` and `code_cell`.
    """
    numbered = [
        {**cell, "id": f"{name[:40]}-{number:02}"} for number, cell in enumerate(cells)
    ]
    content = {
        "cells": numbered,
        "metadata": {
            "kernelspec": {
                "display_name": "Python 3 (ipykernel)",
                "language": "python",
                "name": "python3",
            },
            "language_info": {"name": "python"},
        },
        "nbformat": 4,
        "nbformat_minor": 5,
    }
    return json.dumps(content, indent=1, ensure_ascii=False) + "\n"


def words_cell(text: str) -> Cell:
    return {"cell_type": "markdown", "metadata": {}, "source": _lines(text)}


def code_cell(text: str) -> Cell:
    return {
        "cell_type": "code",
        "execution_count": None,
        "metadata": {},
        "outputs": [],
        "source": _lines(text),
    }


def _lines(text: str) -> list[str]:
    return text.strip("\n").splitlines(keepends=True)


_KINDS = {
    "input": "input",
    "output": "output, written whole",
    "inout": "input and output",
    "size": "size",
    "scalar": "number",
}
_WITHOUT_GPU = {
    "simulated": "**Without a GPU** PyTorch's tensors say `cuda:0` all the same, and "
    "what you ask is recorded. A simulated GPU then does it, and finds what no wait "
    "keeps from happening too early. What it does not know is an error that names "
    "your line.",
    "torch": "**Without a GPU** PyTorch's tensors say `cuda:0` all the same, or are "
    "the CPU's where that can't be had: take `x.device` where you need a device.",
    "cpu": "**Without a GPU** tensors are the CPU's: take `x.device` where you need a "
    "device.",
}
#: in given.py: the grader calls this one, whatever else a learner's source defines
_GIVEN_RUN = re.compile(r"^def run\(", re.M)
_PLACES = {
    "device": "on the GPU",
    "pinned": "pinned memory of the host",
    "host": "ordinary memory of the host",
}


def notebook(loaded: LoadedLab, source: str) -> str:
    """Write a lab's notebook, with this source in its cell."""
    lab = loaded.lab
    cells = [
        words_cell(loaded.text),
        words_cell(task_words(loaded)),
        *_given(loaded),
        code_cell(
            "import warpbook\n\n%load_ext warpbook\n"
            f'lab = warpbook.labs.open("{lab.id}")\nlab'
        ),
        words_cell(_your_turn(lab)),
        code_cell(f"%%lab {lab.id}\n{source}"),
        *_try_it(lab),
        words_cell(_hints(len(loaded.hints))),
        code_cell("lab.hint()"),
        words_cell(
            f"## Check again\n\n`%%lab` has checked your source already. This checks "
            f"`{language_of(lab).source_name}` as it is now, such as after a change in "
            "another editor. Nothing is handed in."
        ),
        code_cell("lab.check()"),
        words_cell(
            "## Submit\n\nYour source is handed in, then graded with hidden cases, "
            "which are drawn for this submission alone"
            + (", and for speed where there is a GPU." if lab.speed else ".")
        ),
        code_cell("lab.submit()"),
        *_trace(lab),
        words_cell(
            "## After a pass\n\nThe card of a submission that passed ends with the "
            "reference solution, a discussion and the next lab. `lab.solution()` shows "
            "the first two again; in a course, once its rules permit. `lab.next()` "
            "opens the next lab."
        ),
    ]
    return notebook_json(cells, lab.id)


def task_words(loaded: LoadedLab) -> str:
    """Write what a lab asks: its words, exactness, functions and parameters."""
    lab = loaded.lab
    after = ",".join(f" `{lab_id}`" for lab_id in lab.after)
    parts = [
        "## What is asked",
        lab.asks.strip(),
    ]
    if lab.tolerance.strip():
        parts.append(f"**Tolerance.** {lab.tolerance.strip()}")
    if lab.plan is not None:
        parts += [_function(function) for function in lab.plan.functions]
        parts.append(_times(lab.plan))
    if lab.host is not None:
        parts.append(_host(lab, lab.host, loaded.given))
    if lab.parameters:
        place = " where |" if lab.host is not None else ""
        head = f"| name | kind | type | shape |{place} |\n"
        rule = "| --- " * (5 + bool(place)) + "|\n"
        parts.append(
            head
            + rule
            + "\n".join(_row(lab, parameter) for parameter in lab.parameters)
        )
    before = f" Do these before:{after}." if after else ""
    parts.append(f"About {lab.minutes} minutes.{before}")
    return "\n\n".join(parts)


def _function(function: Function) -> str:
    names = ", ".join(argument.name for argument in function.arguments)
    head = f"**`{function.name}({names}) -> {function.returns}`**"
    lines = [f"{head} {' '.join(function.about.split())}"]
    lines += [
        f"- `{argument.name}`: {' '.join(argument.about.split())}"
        for argument in function.arguments
    ]
    return "\n".join([lines[0], "", *lines[1:]])


def _times(plan: Plan) -> str:
    words = (
        f"**Time.** A call may take {plan.call_s:g} s of CPU time, and all calls of a "
        f"check together {PLAN_LIMITS.processor_s} s."
    )
    dialogues = [one.name for one in plan.functions if one.is_dialogue]
    if not dialogues:
        return words
    names = " and ".join(f"`{name}`" for name in dialogues)
    return f"{words} Calls of {names} are counted apart from the others."


def _host(lab: Lab, host: Host, given: str) -> str:
    sizes = ", ".join(
        parameter.name for parameter in lab.parameters if parameter.kind == "size"
    )
    others = ", ".join(
        parameter.name for parameter in lab.parameters if parameter.kind != "size"
    )
    prepare = f"You write `prepare({sizes})`, which is called once for a case"
    if _GIVEN_RUN.search(given):
        task = (
            f"{prepare}. The grader hands what it returns to `run` of given.py several "
            "times, each with new inputs in the same memory. That `run` fills the "
            "outputs below. Arguments of `prepare` have these names, in any order."
        )
    else:
        task = (
            f"{prepare} and returns whatever you want as `state`, and "
            f"`run(state, {others})`, which is called several times, each with new "
            "inputs in the same memory. What the outputs hold is looked at once all "
            "that you asked of the GPU is done. Arguments have these names, in any "
            "order."
        )
    return f"{task}\n\n{_WITHOUT_GPU[host.without_gpu]}"


def _given(loaded: LoadedLab) -> list[Cell]:
    """Show what the learner's source may import."""
    # what a plan gives is for a cell to try, and its text says when to look into it
    if not loaded.given or loaded.lab.host is None:
        return []
    sentence = "You may import this from `given`; the file lies beside this notebook."
    return [words_cell(f"{sentence}\n\n```python\n{loaded.given.strip()}\n```")]


def _row(lab: Lab, parameter: Parameter) -> str:
    shape = " x ".join(parameter.shape)
    cells = (
        f"`{parameter.name}`",
        _KINDS.get(parameter.kind, parameter.kind),
        parameter.dtype,
        f"`{shape}`" if shape else "",
        *((_PLACES[parameter.place] if shape else "",) if lab.host is not None else ()),
        parameter.about.replace("|", "\\|"),
    )
    return f"| {' | '.join(cells)} |"


def _your_turn(lab: Lab) -> str:
    language = language_of(lab)
    return (
        "## Your turn\n\nRun the cell above once (Shift and Enter). The next cell is "
        f"yours: change it and run it. That saves its source in "
        f"`{language.source_name}`, beside this notebook, and checks it against all "
        f"{'questions' if lab.plan else 'cases'} that you see; `%%lab {lab.id} "
        f"--no-check` only saves it.{language.source_note} Lines are counted from the "
        f"cell's first one. `warpbook labs check {lab.id}` on a terminal takes the "
        "same file."
    )


def _try_it(lab: Lab) -> list[Cell]:
    costs = language_of(lab).trial_words(lab)
    if costs is None:
        # plain Python: the learner's own cell is the place to try it
        return []
    return [
        words_cell(
            "## Try it\n\nRun the cell above, then these: what the GPU does meanwhile, "
            f"and one of the cases that you see{costs}. "
            f"`lab.run(2)` takes the second; there are {len(lab.public)}."
        ),
        code_cell("warpbook.Monitor(window_s=30)"),
        code_cell("lab.run(1)"),
    ]


def _trace(lab: Lab) -> list[Cell]:
    if lab.speed is None:
        return []
    return [
        words_cell(
            "## What held it back\n\nWhere there is a GPU, your source runs once more, "
            "untimed, and you get its trace: the report of any profiled cell, and, in "
            "JupyterLab, its timeline below and in the GPU dashboard."
        ),
        code_cell("lab.trace()"),
    ]


def _hints(count: int) -> str:
    return (
        f"## Hints\n\nThere are {count}, from vague to precise. `lab.hint(1)` opens "
        "the first, `lab.hint(2)` the next. `lab.hint()` shows those that are open."
    )
