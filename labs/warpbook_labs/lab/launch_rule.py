"""How a submission wants its kernels launched: comments that look like CUDA's launches.

    // scratch: partial float32[ceil_div(n, 256)]
    // launch: sum<<<ceil_div(n, 256), 256>>>(x, partial, n)
    // launch: total<<<1, 256, 1024>>>(partial, out, ceil_div(n, 256))

Grid and block are one expression, or up to three in brackets, with or without `dim3`;
the third number between the angles is dynamic shared memory in bytes, and a fourth, the
stream, changes nothing. Arguments are the lab's parameters, scratch buffers, floating
numbers, and expressions of the sizes, which become whole numbers of the kernel's own
type. Constants at the top of the source are known, where no size has their name. A
kernel may be an instance of a template, or in a namespace. Lines within `/* */` are
read, too. Triton's rule (`triton/rule.py`) shares all but a launch's form.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Mapping
from contextlib import suppress
from dataclasses import dataclass, field, replace
from typing import get_args

from warpbook_labs.errors import BadRule
from warpbook_labs.lab.expressions import BadExpression, number_of, value
from warpbook_labs.lab.spec import DType

MOST_LAUNCHES = 64
_MOST_SCRATCH = 16
_MOST_CHARACTERS = 1000
#: what a lab's buffers have, and what kernels keep for themselves
_SCRATCH_TYPES = (*get_args(DType), "uint64", "int16", "uint16")
# no `\s` and no lazy part: hostile text would have them try every pair of places
_LINE = r"^[ \t]*(?:({mark})[ \t]*)?(launch|scratch)[ \t]*:(.*)$"
#: beside `//`: what a line within a block comment begins with
_CUDA_MARK = r"//+|/?\*+"
_LAUNCH = re.compile(
    r"([A-Za-z_]\w*(?:\s*::\s*\w+)*(?:\s*<(?:[^<>]|<[^<>]*>)*>)?)\s*"
    r"<<<(.*)>>>\s*\((.*)\)\s*;?$"
)
#: a macro or a constant that is a number, at the beginning of a line
_CONSTANT = re.compile(
    r"^(?:#[ \t]*define[ \t]+(\w+)[ \t]+|"
    # so few words that hostile text has few ways to be read
    r"(?:(?:static|inline|constexpr|const)[ \t]+){1,4}(?:\w+[ \t]+){1,4}(\w+)[ \t]*=)"
    r"([^;,/\n]{1,80})",
    re.M,
)
_SCRATCH = re.compile(r"([a-z][a-z0-9_]{0,31})\s+(\w+)\s*\[(.*)\]\s*;?$")

Dim = tuple[int, int, int]


@dataclass(frozen=True)
class Scratch:
    """Memory that the submission wants between its launches."""

    name: str
    #: as NumPy names it
    dtype: str
    length: str
    #: constants of the source
    known: Mapping[str, int] = field(default_factory=dict, hash=False)


@dataclass(frozen=True)
class Launch:
    """One launch as it was written."""

    kernel: str
    grid: tuple[str, ...]
    block: tuple[str, ...]
    shared_bytes: str
    arguments: tuple[str, ...]
    #: of the source
    line: int
    #: of Triton: numbers that are fixed when it is compiled, by parameter or option
    constants: tuple[tuple[str, str], ...] = ()
    #: constants of the source
    known: Mapping[str, int] = field(default_factory=dict, hash=False)

    def number(self, text: str, sizes: Mapping[str, int]) -> int | float:
        """Compute an expression in it for a case.

        Raises:
            BadRule: it can't be computed.
        """
        try:
            return number_of(text, {**self.known, **sizes})
        except BadExpression as problem:
            raise BadRule(str(problem), self.line) from None

    def sides(self, sizes: Mapping[str, int]) -> tuple[Dim, Dim, int]:
        """Give grid, block and dynamic shared memory for a case.

        Raises:
            BadRule: an expression can't be computed.
        """
        names = {**self.known, **sizes}
        try:
            grid, block = _dim(self.grid, names), _dim(self.block, names)
            shared_bytes = value(self.shared_bytes, names)
        except BadExpression as problem:
            raise BadRule(str(problem), self.line) from None
        if shared_bytes < 0:
            raise BadRule(f"{shared_bytes:,} bytes can't be shared.", self.line)
        return grid, block, shared_bytes


@dataclass(frozen=True)
class Rule:
    """All launches of a submission, in order."""

    launches: tuple[Launch, ...]
    scratch: tuple[Scratch, ...]


def read_rule(source: str) -> Rule:
    """Read the rule out of a source.

    Raises:
        BadRule: there is none, or it is invalid.
    """
    example = "// launch: my_kernel<<<ceil_div(n, 256), 256>>>(x, out, n)"
    known: dict[str, int] = {}
    for macro, name, text in _CONSTANT.findall(source):
        # what is no number is none for a rule
        with suppress(BadExpression):
            known[macro or name] = value(text.strip(), known)
    return read_lines(source, _CUDA_MARK, _launch, example, known)


def read_lines(
    source: str,
    mark: str,
    read_launch: Callable[[str, int], Launch],
    example: str,
    known: Mapping[str, int],
) -> Rule:
    """Read the rule out of the comments of a source.

    Args:
        mark: a pattern of what such a line begins with; nothing and `*` count within
            `/* */` alone.
        read_launch: makes a launch of its text and its line.
        known: constants of the source.

    Raises:
        BadRule: there is none, or it is invalid.
    """
    launches: list[Launch] = []
    scratch: list[Scratch] = []
    seen, is_in_block = 0, False
    for match in re.finditer(_LINE.format(mark=mark), source, re.M):
        at = match.start(2)
        opened, closed = (source.rfind(sign, seen, at) for sign in ("/*", "*/"))
        if opened != closed:
            is_in_block = opened > closed
        seen = at
        if (match[1] or "*")[0] == "*" and not is_in_block:
            continue
        line = source.count("\n", 0, at) + 1
        text = match[3].strip().removesuffix("*/").strip()
        if len(text) > _MOST_CHARACTERS:
            raise BadRule(f"it has more than {_MOST_CHARACTERS:,} signs.", line)
        if match[2] == "launch":
            launches.append(replace(read_launch(text, line), known=known))
        else:
            scratch.append(replace(_scratch(text, line), known=known))
        if len(launches) > MOST_LAUNCHES:
            raise BadRule(f"{MOST_LAUNCHES} launches may be, no more.", line)
        if len(scratch) > _MOST_SCRATCH:
            raise BadRule(f"{_MOST_SCRATCH} scratch buffers may be.", line)
    if not launches:
        raise BadRule(
            "The source does not say how its kernel is launched. Add a comment such as "
            f"{example}"
        )
    return Rule(tuple(launches), tuple(scratch))


def _launch(text: str, line: int) -> Launch:
    match = _LAUNCH.match(text)
    if match is None:
        raise BadRule("a launch is written kernel<<<grid, block>>>(arguments).", line)
    numbers = split(match[2])
    if not 2 <= len(numbers) <= 4:
        raise BadRule("between <<< and >>> are grid, block, bytes, stream.", line)
    shared = numbers[2] if len(numbers) > 2 else "0"
    grid, block = sides(numbers[0]), sides(numbers[1])
    if max(len(grid), len(block)) > 3:
        raise BadRule("grid and block have three sides at most.", line)
    kernel = re.sub(r"\s", "", match[1])
    return Launch(kernel, grid, block, shared, split(match[3]), line)


def _scratch(text: str, line: int) -> Scratch:
    match = _SCRATCH.match(text)
    if match is None or match[2] not in _SCRATCH_TYPES:
        raise BadRule(
            f"scratch memory is written name type[length], with a type "
            f"of {', '.join(_SCRATCH_TYPES)}.",
            line,
        )
    # of an array with several sides they are multiplied
    sides = [split(side) for side in re.split(r"\]\s*\[", match[3])]
    length = " * ".join(f"({one})" for side in sides for one in side)
    return Scratch(match[1], match[2], length)


def sides(text: str) -> tuple[str, ...]:
    """Read one expression, or several in brackets."""
    inner = re.sub(r"^\s*dim3\b\s*", "", text.strip())
    if inner.startswith("(") and inner.endswith(")") and len(split(inner[1:-1])) > 1:
        return split(inner[1:-1])
    return (inner,)


def split(text: str) -> tuple[str, ...]:
    """Split at the commas that are in no bracket."""
    parts, depth, begin = [], 0, 0
    for at, char in enumerate(text):
        depth += (char in "([") - (char in ")]")
        if char == "," and not depth:
            parts.append(text[begin:at].strip())
            begin = at + 1
    parts.append(text[begin:].strip())
    return tuple(part for part in parts if part)


def _dim(sides: tuple[str, ...], sizes: Mapping[str, int]) -> Dim:
    x, y, z = (*(value(side, sizes) for side in sides), 1, 1)[:3]
    return x, y, z
