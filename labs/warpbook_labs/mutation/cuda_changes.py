"""Mistakes in CUDA C++ that need the form of its statements."""

from __future__ import annotations

from collections.abc import Iterator

from warpbook_labs.mutation.edits import Change
from warpbook_labs.mutation.token_changes import (
    blanked,
    replaced,
    rule_changes,
    token_changes,
)

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
