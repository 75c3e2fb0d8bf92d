"""Which changes are named in programs, and which of their edits agree.

`python -m tests.profiler.advice.styles FILE.toml ...` needs no GPU. Each program is
recorded with its large sizes, without memory, and on the CPU with its small ones.
"""

from __future__ import annotations

import argparse
from pathlib import Path
from typing import NamedTuple

from tests.gpu.exam.on_cpu import in_process
from tests.profiler.advice.styles.harness import (
    Program,
    advised,
    outcome,
    read_programs,
)
from warpbook_profiler.model.change import Change


class _Offer(NamedTuple):
    """What is offered for one record of a program."""

    named: list[str]
    edits: list[Change]
    problem: str = ""

    def names(self, program: Program) -> bool:
        return not {program.change, *program.accepted}.isdisjoint(self.named[:2])


def _offer(program: Program, is_large: bool) -> _Offer:
    try:
        changes, edits = advised(program, is_large)
    except Exception as problem:  # noqa: BLE001  # of somebody's program
        return _Offer([], [], f"{problem!r:.150}")
    return _Offer([one.name for one in changes], edits)


def _judged(program: Program) -> tuple[bool, bool]:
    """Print what a program gets; tell whether it is named, and edited as well."""
    print(f"{program.name} ({program.change})")
    is_named, edits = False, dict[str, Change]()
    for record, is_large in (("large", True), ("small", False)):
        offer = in_process(_offer, program, is_large)
        if isinstance(offer, str):
            offer = _Offer([], [], offer)
        named = offer.names(program)
        is_named |= named
        words = offer.problem or ", ".join(offer.named[:2]) or "nothing"
        print(f"    named, {record}: {'yes' if named else 'no'} ({words})")
        for one in offer.edits:
            if one.name in (program.change, *program.accepted):
                edits.setdefault(one.code, one)
    is_edited = False
    for one in edits.values():
        result = in_process(outcome, program, one)
        is_edited |= result == "agrees"
        print(f"    edit, {one.name}: {result}")
    if not edits:
        print("    no edit")
    return is_named, is_edited


if __name__ == "__main__":
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("files", nargs="+", type=Path, metavar="FILE.toml")
    programs = [
        one for path in parser.parse_args().files for one in read_programs(path)
    ]
    judged = [_judged(one) for one in programs]
    for words, at in (("named among the first two", 0), ("an edit that agrees", 1)):
        print(f"{words}: {sum(one[at] for one in judged)} of {len(judged)}")
