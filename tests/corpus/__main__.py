"""Judges the corpus: `python -m tests.corpus --help`."""

from __future__ import annotations

import argparse
import multiprocessing
import sys
from collections.abc import Iterator, Sequence
from concurrent.futures import ProcessPoolExecutor
from functools import partial
from pathlib import Path

from tests.corpus import mutants
from tests.corpus.entries import BadCorpus, Entry, read_all
from tests.corpus.judging import Judged, judge
from tests.corpus.report import page, table
from tests.corpus.tally import LANGUAGES, misjudged
from warpbook_labs.errors import NoGpu
from warpbook_labs.gpu.gpu import find_gpu


def main(arguments: Sequence[str] | None = None) -> int:
    """Judge what is asked for, and tell how many verdicts are right."""
    options = _parser().parse_args(arguments)
    try:
        entries = read_all(options.lab)
        if options.gpu:
            # else all would be judged without one, and told as if it were with one
            find_gpu()
    except (BadCorpus, NoGpu) as problem:
        print(problem, file=sys.stderr)
        return 2
    entries = [
        entry
        for entry in entries
        if (not options.language or entry.language in options.language)
        and (not options.only or entry.name in options.only)
    ]
    judged = []
    for one in _judged(entries, options.jobs, options.gpu):
        judged.append(one)
        if options.all or not one.is_as_known:
            _tell(one)
    print("\n" + "\n".join(table(judged, options.gpu)))
    print(f"\n{len(misjudged(judged, options.gpu))} of {len(judged)} are misjudged.")
    if options.write:
        old = (
            options.write.read_text(encoding="utf-8") if options.write.exists() else ""
        )
        text = page(judged, options.gpu, mutants.part(old))
        options.write.write_text(text, encoding="utf-8")
    return 0


def _parser() -> argparse.ArgumentParser:
    parser = argparse.ArgumentParser(
        "python -m tests.corpus", description="Judge sources whose verdict is known."
    )
    parser.add_argument("--lab", action="append", default=[], help="the id of a lab")
    parser.add_argument("--language", action="append", choices=list(LANGUAGES))
    parser.add_argument("--only", action="append", help="the name of a source")
    parser.add_argument("--jobs", type=int, default=1, help="processes at a time")
    parser.add_argument("--gpu", action="store_true", help="grade on the GPU, too")
    parser.add_argument("--all", action="store_true", help="tell of every source")
    parser.add_argument("--write", type=Path, help="the page that is written")
    return parser


def _judged(entries: Sequence[Entry], jobs: int, use_gpu: bool) -> Iterator[Judged]:
    one = partial(judge, use_gpu=use_gpu)
    if jobs == 1:
        yield from map(one, entries)
        return
    spawned = multiprocessing.get_context("spawn")
    with ProcessPoolExecutor(jobs, spawned) as pool:
        yield from pool.map(one, entries)


def _tell(judged: Judged) -> None:
    entry = judged.entry
    named = [
        word
        for word, is_named in (("line", judged.has_line), ("cause", judged.has_cause))
        if is_named and not entry.is_right
    ]
    mark = "ok" if judged.is_as_known else "MISJUDGED"
    known = "right" if entry.is_right else "wrong"
    print(
        f"{mark:9} {known} {entry.title}: {judged.verdict} "
        f"[{' and '.join(named)}] {judged.seconds:.1f} s. {judged.message}",
        flush=True,
    )


if __name__ == "__main__":
    sys.exit(main())
