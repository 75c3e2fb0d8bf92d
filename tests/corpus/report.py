"""The verdicts on the corpus as a page of the documentation."""

from __future__ import annotations

from collections.abc import Sequence

from tests.corpus.judging import Judged
from tests.corpus.tally import misjudged, tallied

_ABOUT = """\
# How well the labs' graders judge

`tests/corpus/` holds sources of which people know whether they are right: by CUDA's
rules and by the lab's. `python -m tests.corpus --write docs/corpus.md` judges each as a
submission and writes this page; `--lab NAME` and `--language cuda` judge some, and
`--gpu` runs them on the GPU of this machine, too. Right ones are written in ways that
are seldom seen. Wrong ones differ from a right one in one thing: `edits.toml` says
which, with the line that a verdict must name. None is a solution of a lab. To add one,
write a file into `sources/<lab>/`, with a comment in its first line, or a difference
into the `edits.toml` there.

*Not supported* is what could not be judged, since something in the source is not known
without a GPU: that is no verdict. *Needs a GPU* are wrong ones that nothing can tell
without one. *Line* and *cause* say for how many of those that were caught a message
names the line at fault, and what is wrong there. Of a wrong number it tells which, and
what it must be: that counts as the cause. Beside it are named up to seven lines that
the number came from, and one of them must be the line at fault. Of plans no line
is named, unless one raises.

Two of the right ones are open questions. `reduction-and-scan/fence_of_every_thread`
gets what it expects from GPUs, and PTX's memory model does not promise it: a fence
orders what its own thread does behind it, and here another thread raises the flag.
`fix-the-stream/list_of_the_sums` is judged by its results on a GPU, where Python sees
the true numbers.
"""


def page(judged: Sequence[Judged], use_gpu: bool, of_mutants: str = "") -> str:
    """Write the page.

    Args:
        of_mutants: what is kept of the page before.
    """
    where = "with a GPU" if use_gpu else "without a GPU"
    parts = [_ABOUT, f"## Verdicts {where}", "\n".join(table(judged, use_gpu))]
    wrong = misjudged(judged, use_gpu)
    titles = {
        "Right, and rejected": [
            judged_source
            for judged_source in wrong
            if judged_source.entry.is_right and judged_source.verdict == "failed"
        ],
        "Right, and not supported": [
            judged_source
            for judged_source in wrong
            if judged_source.entry.is_right and judged_source.verdict == "not supported"
        ],
        "Wrong, and passed": [
            judged_source
            for judged_source in wrong
            if judged_source.verdict == "passed"
        ],
        "Wrong, and not supported": [
            judged_source
            for judged_source in wrong
            if not judged_source.entry.is_right
            and judged_source.verdict == "not supported"
        ],
    }
    for title, those in titles.items():
        if those:
            lines = [f"- {line}" for line in map(one_line, those)]
            parts += [f"## {title}", "\n".join(lines)]
    parts += [of_mutants] if of_mutants else []
    return "\n\n".join(part.strip("\n") for part in parts) + "\n"


def table(judged: Sequence[Judged], use_gpu: bool) -> list[str]:
    """Write the counts by language, as a table."""
    head = (
        " ",
        "right",
        "passed",
        "rejected",
        "not supported",
        "wrong",
        "caught",
        "passed",
        "not supported",
        "needs a GPU",
        "line",
        "cause",
        "both",
        "seconds",
    )
    rows = [head, ("---",) + ("---:",) * (len(head) - 1)]
    for language, tally in tallied(judged, use_gpu).items():
        numbers = (
            tally.right,
            tally.right_passed,
            tally.right_rejected,
            tally.right_unsupported,
            tally.wrong,
            tally.wrong_caught,
            tally.wrong_passed,
            tally.wrong_unsupported,
            tally.wrong_beyond,
            tally.line_named,
            tally.cause_named,
            tally.both_named,
            round(tally.seconds),
        )
        rows.append((language, *map(str, numbers)))
    return [f"| {' | '.join(row)} |" for row in rows]


def one_line(judged: Judged) -> str:
    """Tell of one source what it is, and what was said of it."""
    entry = judged.entry
    said = "" if judged.verdict == "passed" else f" Reported: {_plain(judged.message)}"
    return f"`{entry.title}`: {entry.about.rstrip('.')}.{said}"


def _plain(message: str) -> str:
    # a page is read as Markdown
    return message.replace("|", "\\|").replace("<", "&lt;").replace("*", "\\*")
