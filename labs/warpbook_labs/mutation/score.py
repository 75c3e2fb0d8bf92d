"""The mutation score of a lab: how many mutants of right solutions are caught."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from hashlib import sha256
from typing import Annotated, Literal

import msgspec
from msgspec import Meta, Struct

from warpbook_labs.errors import BadLab
from warpbook_labs.grading.table import grader_of
from warpbook_labs.lab.catalogues import read_text
from warpbook_labs.lab.files import VAULT
from warpbook_labs.lab.languages.table import language_of
from warpbook_labs.lab.loaded import LoadedLab, Submission
from warpbook_labs.mutation.changes import (
    Change,
    Mutant,
    blanked,
    mutants,
    python_changes,
    replaced,
    rule_changes,
    token_changes,
)
from warpbook_labs.results.check import CheckResult
from warpbook_monitors import toml_text

#: what an operand of `&&` and `?` is made of, brackets of one level within it
_OPERAND = r"(?:[^&|(){};,?=\s]|[<>=!]=|\([^()]*\)| (?!&&|\|\||\?|[-+*/]?= ))+"
#: what is assigned to
_PLACE = r"\*?[\w.]+(?:\[[^;{}]*?\]|->\w+)*"
#: where a statement begins
_BEGIN = r"(?:^|(?<=\) )|(?<=else )|(?<=\{ ))\s*"
_PATTERNS = (
    ("condition", rf"{_OPERAND}(?= (?:&&|\?))", "true"),
    ("condition", rf"(?<=&& ){_OPERAND}", "true"),
    ("condition", r"(?<=\bif )\((?:[^()]|\((?:[^()]|\([^()]*\))*\))*\)", "(true)"),
    ("axis", r"\b((?:thread|block)Idx|blockDim|gridDim)\.x", "{1}.y"),
    ("axis", r"\b((?:thread|block)Idx|blockDim|gridDim)\.[yz]", "{1}.x"),
    (
        "atomic",
        r"atomicAdd\(([^,]+), ((?:[^(),]|\([^()]*\))+)\)",
        "((*({1}) += {2}) - {2})",
    ),
    (
        "barrier",
        rf"{_BEGIN}[\w.:>-]*(?:sync|fence|wait|commit|arrive)\w*\([^;{{}}]*\);",
        ";",
    ),
    ("statement", rf"{_BEGIN}(?!if|for|while)[\w.:]+\([^;{{}}]*\);", ";"),
    ("statement", rf"{_BEGIN}{_PLACE} (?:[-+*/%&|^]|<<|>>)?= [^;{{}}]*;", ";"),
    ("statement", r"\b(?:return|break|continue);", ";"),
)


def cuda_changes(source: str) -> Iterator[Change]:
    """Yield mistakes of a source in CUDA C++, its launch rule too."""
    yield from rule_changes(source)
    yield from token_changes(source, ".cu")
    text = blanked(source, ".cu")
    for operator, pattern, new in _PATTERNS:
        yield from replaced(operator, pattern, new, text, source)


#: beside `lab.toml`: mutants that are right, and why
EQUIVALENT = "mutants.toml"
Outcome = Literal["killed", "survived", "not compiled", "not supported"]
_Text = Annotated[str, Meta(min_length=1, max_length=2_000)]


class Equivalent(Struct, frozen=True, forbid_unknown_fields=True):
    """Mutants of one line that are right, too."""

    #: the line as it is and with each mistake, of single spaces
    line: _Text
    becomes: Annotated[tuple[str, ...], Meta(min_length=1)]
    #: why no input tells them apart
    reason: _Text
    #: the solution, where others have the line and there it is wrong; "" is each
    file: str = ""


class _Listed(Struct, frozen=True, forbid_unknown_fields=True):
    equivalent: tuple[Equivalent, ...] = ()


class Score(Struct):
    """Counts of a lab's mutants."""

    made: int
    equivalent: int
    killed: int = 0
    survived: int = 0
    not_compiled: int = 0
    not_supported: int = 0

    def add(self, outcome: Outcome) -> None:
        name = outcome.replace(" ", "_")
        setattr(self, name, getattr(self, name) + 1)

    @property
    def share(self) -> float | None:
        """The share of judged mutants that were killed; None where none was judged."""
        judged = self.killed + self.survived
        return self.killed / judged if judged else None


def made(loaded: LoadedLab) -> tuple[list[Mutant], list[Mutant]]:
    """Return the mutants that are wrong, and those that are right, each by digest.

    Raises:
        BadLab: its solutions are kept apart, or `mutants.toml` is malformed, or names
            what is no mutant.
    """
    if loaded.private is None:
        raise BadLab(f"{loaded.folder}: its solutions are kept apart; see {VAULT}.")
    suffix = language_of(loaded.lab).suffix
    changes = cuda_changes if suffix == ".cu" else python_changes
    sources = {f"reference{suffix}": loaded.reference}
    sources |= {
        f"solutions/correct/{name}": text for name, text in loaded.correct.items()
    }
    all_mutants = [
        mutant
        for file, source in sources.items()
        for mutant in mutants(file, source, changes(source))
    ]
    known = _equivalent(loaded, all_mutants)
    wrong = [one for at, one in enumerate(all_mutants) if at not in known]
    right = [all_mutants[at] for at in known]
    return sorted(wrong, key=_digest), sorted(right, key=_digest)


def regraded(loaded: LoadedLab, draws: int) -> Iterator[tuple[Mutant, Outcome, str]]:
    """Grade the mutants that are listed as right; yield each, and why one is not.

    Args:
        draws: of hidden cases, for each mutant, up to the first that it does not pass.

    Raises:
        BadLab, NotInstalled: as `measure`.
    """
    for mutant in made(loaded)[1]:
        first, words = int(_digest(mutant)[:8], 16), ""
        outcome: Outcome = "survived"
        for seed in range(first, first + draws):
            submission = Submission(loaded, mutant.source, use_gpu=False, seed=seed)
            result = grader_of(loaded.lab).grade(submission)
            outcome = _outcome(result)
            if outcome != "survived":
                failed = [case.message for case in result.cases if not case.passed]
                words = f"seed {seed}: {(failed or [result.message])[0]}"
                break
        yield mutant, outcome, words


def measure(loaded: LoadedLab, sample: int) -> Iterator[tuple[Mutant, Outcome, Score]]:
    """Grade mutants as hand-ins without a GPU; yield each, with the score so far.

    Args:
        sample: how many; a smaller one is a part of a larger one.

    Raises:
        BadLab: as `made`; or the lab's own Python fails.
        NotInstalled: a compiler or PyTorch is not here.
    """
    wrong, right = made(loaded)
    score = Score(len(wrong) + len(right), len(right))
    for mutant in wrong[:sample]:
        try:
            outcome = _outcome(_graded(loaded, mutant))
        except BadLab as problem:
            raise BadLab(f"{mutant.words}: {problem}") from None
        score.add(outcome)
        yield mutant, outcome, score


def _graded(loaded: LoadedLab, mutant: Mutant) -> CheckResult:
    seed = int(_digest(mutant)[:8], 16)
    submission = Submission(
        loaded, mutant.source, seed, use_gpu=False, stops_at_wrong=True
    )
    return grader_of(loaded.lab).grade(submission)


def _digest(mutant: Mutant) -> str:
    words = (mutant.file, mutant.operator, mutant.before, mutant.after)
    return sha256("\n".join(words).encode()).hexdigest()


def _outcome(result: CheckResult) -> Outcome:
    match result.status:
        case "passed":
            return "survived"
        case "unsupported" | "too busy":
            return "not supported"
        case "compile error" | "bad launch rule":
            return "not compiled"
        case _:
            return "killed"


def _equivalent(loaded: LoadedLab, mutants_made: Sequence[Mutant]) -> set[int]:
    """Return the places of the mutants that the lab's author knows as right."""
    file = (loaded.private or loaded.folder) / EQUIVALENT
    if not file.is_file():
        return set()
    try:
        listed = toml_text.decode(read_text(file), _Listed).equivalent
    except msgspec.DecodeError as problem:
        raise BadLab(f"{file}: {problem}") from None
    known: set[int] = set()
    for one in listed:
        for becomes in one.becomes:
            matching = {
                place
                for place, mutant in enumerate(mutants_made)
                if (mutant.before, mutant.after) == (one.line, becomes)
                and one.file in ("", mutant.file)
            }
            if not matching:
                words = f"no mutant of `{one.line}` is `{becomes}`"
                raise BadLab(f"{file}: {words}. Take it out, or mend it.")
            known |= matching
    return known
