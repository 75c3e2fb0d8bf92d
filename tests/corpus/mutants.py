"""Measures the labs' mutation scores: `python -m tests.corpus.mutants --help`.

The table in the page is all that is kept: each lab's row is written as soon as it is
measured, so that a run that is ended goes on with the labs that have none.
"""

from __future__ import annotations

import argparse
import re
import sys
from collections.abc import Sequence
from pathlib import Path

from warpbook_labs.lab.loader import load_all
from warpbook_labs.mutation.score import Score, measure

_BEGIN, _END = "<!-- mutants -->", "<!-- end of mutants -->"
_HEAD = (
    *("lab", "made", "equivalent", "killed", "passed", "not compiled"),
    *("not supported", "score"),
)
_ABOUT = """\
## Mutation scores

`python -m tests.corpus.mutants --write docs/corpus.md` makes mutants of right solutions
of each lab, with one mistake each: a boundary, an operator, a constant, an order, a
narrower type, a barrier, mask, statement or state left out. A sample of them (30 of
each lab, if `--sample` says no other) is graded without a GPU as hand-ins are. Those
that the lab's `mutants.toml` explains as right are *equivalent* and not graded:
`warpbook labs validate --mutants LAB --equivalent 10` holds them against ten more draws
and names any that fails. In *continuous-batching* most of them are other schedulers
that meet all bounds. The score is the share of *killed* ones among those that were
judged; what does not compile or is not supported says nothing.
"""


def main(arguments: Sequence[str] | None = None) -> int:
    """Measure the labs that are asked for, or those without a row."""
    parser = argparse.ArgumentParser("python -m tests.corpus.mutants")
    parser.add_argument("--lab", action="append", default=[], help="the id of a lab")
    parser.add_argument("--sample", type=int, default=30, help="mutants of a lab")
    parser.add_argument("--write", type=Path, required=True, help="the page")
    options = parser.parse_args(arguments)
    labs = load_all()
    for name in options.lab or [
        name for name in labs if name not in rows(options.write)
    ]:
        score = Score(0, 0)
        for mutant, outcome, scored in measure(labs[name], options.sample):
            score = scored
            if outcome != "killed":
                print(f"{outcome}: {name}/{mutant.words}", flush=True)
        # others may have written meanwhile
        known = rows(options.write) | {name: score}
        _write(options.write, [(lab, known[lab]) for lab in labs if lab in known])
    return 0


def part(page: str) -> str:
    """Return what a page has of mutants, with its marks; "" where it has none."""
    found = re.search(f"{_BEGIN}.*?{_END}\n", page, re.DOTALL)
    return found[0] if found else ""


def rows(page: Path) -> dict[str, Score]:
    """Return the scores in a page, by lab."""
    row = re.compile(r"^\| ([a-z0-9-]+) \|((?: [\d,]+ \|){6})", re.MULTILINE)
    counts = row.findall(part(page.read_text(encoding="utf-8")))
    return {lab: Score(*map(int, numbers.split("|")[:-1])) for lab, numbers in counts}


def _write(page: Path, scores: Sequence[tuple[str, Score]]) -> None:
    lines = [_HEAD, ("---",) + ("---:",) * (len(_HEAD) - 1)]
    lines += [_row(lab, [score]) for lab, score in scores]
    lines.append(_row(f"**{len(scores)} labs**", [score for _, score in scores]))
    table = "\n".join(f"| {' | '.join(line)} |" for line in lines)
    new = f"{_BEGIN}\n\n{_ABOUT}\n{table}\n\n{_END}\n"
    text = page.read_text(encoding="utf-8")
    old = part(text)
    page.write_text(
        text.replace(old, new) if old else f"{text}\n{new}", encoding="utf-8"
    )


def _row(name: str, scores: Sequence[Score]) -> tuple[str, ...]:
    fields = (
        "made",
        "equivalent",
        "killed",
        "survived",
        "not_compiled",
        "not_supported",
    )
    total = Score(*(sum(getattr(one, field) for one in scores) for field in fields))
    share = "" if total.share is None else f"{100 * total.share:.1f} %"
    return name, *(str(getattr(total, field)) for field in fields), share


if __name__ == "__main__":
    sys.exit(main())
