"""Questions on a learner's own right source, answered by the engine that graded it.

A question has no key: the engine counts, or checks the source with one change. What it
can't tell clearly of a source is not asked. CUDA C++ has all kinds, Triton that of
bytes; languages without kernels have none.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Iterator, Mapping, Sequence
from itertools import combinations_with_replacement
from random import Random

from msgspec import Struct

from warpbook_labs.errors import BadRule, TooBusy
from warpbook_labs.grading.table import grader_of
from warpbook_labs.lab.languages.table import language_of
from warpbook_labs.lab.launch_rule import read_rule, split
from warpbook_labs.lab.loaded import LoadedLab, Submission
from warpbook_labs.mutation.changes import blanked
from warpbook_labs.results.check import CaseResult, CheckResult
from warpbook_labs.results.findings import Counts

#: asked after a pass
MOST_QUESTIONS = 2
_MOST_CHOICES = 4
#: lines of which pairs are wrong choices
_MOST_LINES = 30
_SECTOR_BYTES = 32
_BARRIER = re.compile(r"__syncthreads\s*\(\s*\)\s*;")
_PLACE = re.compile(r"\bon line (\d+)")
_LAUNCH = re.compile(r"<<<(.*)>>>")
#: a number of threads of which others are worth a question
_BLOCK = re.compile(r"[1-9][0-9]{1,3}")
#: what a check names first, by the kind of its finding
_NOTHING = "Nothing: all results stay right."
_WRONG = "A wrong or missing element of an output, and no other mistake."
_RACE = "A data race."
_BEYOND = "An access beyond a buffer."
_NO_RUN = "A launch that can't be: nothing runs."
_BARRIER_MISSED = "A barrier that some threads miss, or that never ends."
_UNWRITTEN = "A read of what nobody wrote."
_BY_KIND = {
    "race": _RACE,
    "out of bounds": _BEYOND,
    "misaligned": _BEYOND,
    "divergent barrier": _BARRIER_MISSED,
    "deadlock": _BARRIER_MISSED,
    "uninitialised read": _UNWRITTEN,
}
_NO_LINES = "No lines: nothing races in the cases shown."


class OwnQuestion(Struct, frozen=True):
    """A question with choices."""

    ask: str
    choices: tuple[str, ...]
    #: place of the right choice, from 0
    right: int
    #: what the engine says of it
    because: str


def draw_questions(
    loaded: LoadedLab, source: str, result: CheckResult, seed: int
) -> tuple[OwnQuestion, ...]:
    """Draw questions on a source that passed; the same seed draws the same ones.

    It checks the source twice at most, against the cases that the lab shows.

    Args:
        loaded: the lab.
        source: the learner's.
        result: of its grading without a GPU.
        seed: chooses kinds, places and the order of choices.

    Raises:
        NotInstalled: a compiler is not here.
    """
    random = Random(seed)
    shown = [case for case in result.cases if not case.is_hidden and case.counts]
    count = source.count("\n") + 1
    if any(line > count for case in shown for line in case.lines):
        # `#line` has given them other numbers
        return ()
    kinds: list[Callable[[], OwnQuestion | None]] = []
    if language_of(loaded.lab).suffix == ".cu":
        kinds = [
            lambda: _block_question(loaded, source, random),
            lambda: _barrier_question(loaded, source, shown, random),
        ]
    kinds.append(lambda: _bytes_question(source, shown, random))
    random.shuffle(kinds)
    drawn: list[OwnQuestion] = []
    for draw in kinds:
        question = draw()
        if question is not None:
            drawn.append(question)
        if len(drawn) == MOST_QUESTIONS:
            break
    return tuple(drawn)


def _bytes_question(
    source: str, shown: Sequence[CaseResult], random: Random
) -> OwnQuestion | None:
    """Ask which line moves most bytes, where one does."""
    if not shown:
        return None
    case = max(shown, key=lambda one: sum(_sectors(one.lines).values()))
    sectors = _sectors(case.lines)
    order = sorted(sectors, key=lambda line: -sectors[line])[:_MOST_CHOICES]
    if len(order) < 2 or sectors[order[0]] == sectors[order[1]]:
        return None
    told = ", ".join(
        f"line {line}: {_SECTOR_BYTES * sectors[line]:,} B" for line in order
    )
    return _shuffled(
        "Which line of your source moves most bytes between device memory and the "
        f'multiprocessors, in the case "{case.about}"? Each sector of {_SECTOR_BYTES} '
        "bytes that a request touches counts whole.",
        [_quoted(source, line) for line in order],
        f"The interpreter counts: {told}.",
        random,
    )


def _sectors(lines: Mapping[int, Counts]) -> dict[int, int]:
    return {
        line: counts.global_sectors
        for line, counts in lines.items()
        if line > 0 and counts.global_sectors
    }


def _block_question(
    loaded: LoadedLab, source: str, random: Random
) -> OwnQuestion | None:
    """Ask what a check says first of the same source with other blocks."""
    try:
        launches = read_rule(source).launches
    except BadRule:
        return None
    launch = next((one for one in launches if _BLOCK.fullmatch(one.block[0])), None)
    if launch is None or len(launch.block) > 1:
        return None
    before = launch.block[0]
    after = "64" if before != "64" else "128"
    lines = source.split("\n")
    written = lines[launch.line - 1]
    found = _LAUNCH.search(written)
    if found is None:
        return None
    numbers = list(split(found[1]))
    numbers[1] = after
    lines[launch.line - 1] = (
        f"{written[: found.start(1)]}{', '.join(numbers)}{written[found.end(1) :]}"
    )
    result = _checked(loaded, "\n".join(lines))
    if result is None:
        return None
    failed = next((case for case in result.cases if not case.passed), None)
    if result.status in ("compile error", "bad launch rule"):
        right, because = _NO_RUN, result.message
    elif failed is None:
        right, because = _NOTHING, result.message
    elif failed.findings:
        kind = failed.findings[0].kind
        if kind not in _BY_KIND:
            return None
        right, because = _BY_KIND[kind], f"{failed.about}: {failed.message}"
    elif failed.wrong is None:
        return None
    else:
        right, because = _WRONG, f"{failed.about}: {failed.message}"
    others = [
        words
        for words in (_NOTHING, _WRONG, _RACE, _BEYOND, _UNWRITTEN)
        if words != right
    ]
    return _shuffled(
        f"Line {launch.line} launches blocks of {before} threads. With {after} there, "
        "and nothing else changed, what does the check say first?",
        [right, *others[: _MOST_CHOICES - 1]],
        because,
        random,
    )


def _barrier_question(
    loaded: LoadedLab, source: str, shown: Sequence[CaseResult], random: Random
) -> OwnQuestion | None:
    """Ask which lines race without a barrier."""
    barriers = list(_BARRIER.finditer(blanked(source, ".cu")))
    if not barriers:
        return None
    barrier = random.choice(barriers)
    at = source.count("\n", 0, barrier.start()) + 1
    # a statement that does nothing, on as many lines
    rest = re.sub(r"[^\n]", " ", barrier[0][1:])
    changed = f"{source[: barrier.start()]};{rest}{source[barrier.end() :]}"
    result = _checked(loaded, changed)
    if result is None:
        return None
    failed = [case for case in result.cases if not case.passed]
    races = [pair for case in failed for pair in _racing(case)]
    accesses = {
        line
        for case in shown
        for line, counts in case.lines.items()
        if line > 0 and (counts.shared_requests or counts.global_requests)
    }
    if races:
        right, because = _pair_words(*races[0]), failed[0].message
    elif not failed:
        right, because = _NO_LINES, result.message
    else:
        return None
    # of thousands of lines there are too many pairs
    few = random.sample(sorted(accesses), min(len(accesses), _MOST_LINES))
    others = [
        _pair_words(*pair)
        for pair in combinations_with_replacement(sorted(few), 2)
        if pair not in races
    ]
    random.shuffle(others)
    if right != _NO_LINES:
        others.insert(0, _NO_LINES)
    if len(others) < 2:
        return None
    return _shuffled(
        f"Which lines race if the barrier on line {at} goes?",
        [right, *others[: _MOST_CHOICES - 1]],
        because,
        random,
    )


def _racing(case: CaseResult) -> Iterator[tuple[int, int]]:
    """Give the two lines of each race, the smaller one first."""
    for finding in case.findings:
        lines = [int(line) for line in _PLACE.findall(finding.message)]
        if finding.kind == "race" and len(lines) == 2:
            first, last = sorted(lines)
            yield first, last


def _pair_words(first: int, last: int) -> str:
    if first == last:
        return f"Line {first} in two threads."
    return f"Lines {first} and {last}."


def _checked(loaded: LoadedLab, source: str) -> CheckResult | None:
    """Check a changed source; None where that tells nothing clear."""
    submission = Submission(loaded, source, use_gpu=False)
    try:
        result = grader_of(loaded.lab).grade(submission)
    except TooBusy:
        return None
    clear = ("passed", "failed", "compile error", "bad launch rule")
    return result if result.status in clear else None


def _quoted(source: str, line: int) -> str:
    text = " ".join(source.split("\n")[line - 1].split())
    return f"Line {line}: {text}"[:200]


def _shuffled(
    ask: str, choices: Sequence[str], because: str, random: Random
) -> OwnQuestion:
    """Make a question whose first choice is right."""
    mixed = list(choices)
    random.shuffle(mixed)
    return OwnQuestion(ask, tuple(mixed), mixed.index(choices[0]), because)
