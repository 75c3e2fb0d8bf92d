"""`warpbook labs validate --mutants`: what mistakes a lab's cases let through.

With `--equivalent`, whether those pass that its author lists as right.
"""

from __future__ import annotations

import argparse

from warpbook.cli.output import CommandError, print_json
from warpbook_labs.course.session import find
from warpbook_labs.errors import BadLab
from warpbook_labs.mutation.score import Score, measure, regraded
from warpbook_monitors.plain_text import printable


def validate_mutants(options: argparse.Namespace) -> int:
    """Print each mutant that passes, and the score of each lab.

    Raises:
        CommandError: no lab is named, or no mutant is to be graded.
    """
    if not options.labs:
        raise CommandError("--mutants takes minutes for a lab: name one, or more.")
    if options.sample < 1:
        raise CommandError("--sample is a number of mutants: 1 or more.")
    if options.equivalent is not None:
        return _validate_equivalent(options)
    worst, outcomes = 0, []
    for name in options.labs:
        problem, score, survivors = "", None, []
        try:
            for mutant, outcome, scored in measure(find(name), options.sample):
                score = scored
                if outcome == "survived":
                    survivors.append(mutant.words)
                    _print(options, f"PASSES  {mutant.words}")
        except BadLab as bad:
            problem, worst = str(bad), 2
            _print(options, f"BAD     {problem}")
        if score is not None and not problem:
            _print(options, _words(name, score))
        worst = max(worst, int(bool(survivors)))
        outcomes.append(
            {"lab": name, "problem": problem, "score": score, "survivors": survivors}
        )
    if options.json:
        print_json({"ok": not worst, "labs": outcomes})
    return worst


def _validate_equivalent(options: argparse.Namespace) -> int:
    """Print each mutant that is listed as right and fails, and how many pass."""
    if options.equivalent < 1:
        raise CommandError("--equivalent is a number of draws: 1 or more.")
    worst, outcomes = 0, []
    for name in options.labs:
        problem, right, not_judged, wrong = "", 0, 0, []
        try:
            for mutant, outcome, words in regraded(find(name), options.equivalent):
                if outcome == "killed":
                    wrong.append(f"{mutant.words}: {words}")
                    _print(options, f"WRONG   {wrong[-1]}")
                elif outcome == "survived":
                    right += 1
                else:
                    not_judged += 1
                    _print(options, f"UNKNOWN {mutant.words}: {outcome}, {words}")
        except BadLab as bad:
            problem, worst = str(bad), 2
            _print(options, f"BAD     {problem}")
        else:
            listed = right + not_judged + len(wrong)
            words = f"{right:,} of {listed:,} mutants that are listed as right pass"
            _print(options, f"{name}: {words}, with {options.equivalent:,} draws each")
        worst = max(worst, int(bool(wrong)))
        outcomes.append(
            {
                "lab": name,
                "problem": problem,
                "right": right,
                "wrong": wrong,
                "not_judged": not_judged,
            }
        )
    if options.json:
        print_json({"ok": not worst, "labs": outcomes})
    return worst


def _print(options: argparse.Namespace, line: str) -> None:
    if not options.json:
        print(printable(line), flush=True)


def _words(name: str, score: Score) -> str:
    judged = score.killed + score.survived
    share = "" if score.share is None else f" ({100 * score.share:.1f} %)"
    return (
        f"{name}: {score.killed:,} of {judged:,} mutants fail{share}; "
        f"{score.made:,} made, {score.equivalent:,} equivalent, "
        f"{score.not_compiled:,} not compiled, {score.not_supported:,} not supported"
    )
