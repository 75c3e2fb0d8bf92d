"""How a submission wants its kernels launched: comments that look like CUDA's launches.

    // scratch: partial float32[ceil_div(n, 256)]
    // launch: sum<<<ceil_div(n, 256), 256>>>(x, partial, n)
    // launch: total<<<1, 256, 1024>>>(partial, out, ceil_div(n, 256))

Grid and block are one expression, or up to three in brackets, with or without `dim3`;
the third number between the angles is dynamic shared memory in bytes, and a fourth, the
stream, changes nothing. Arguments are the lab's parameters, scratch buffers, floating
numbers, and expressions of the sizes, which become whole numbers of the kernel's own
type. A kernel may be an instance of a template, or in a namespace. Lines within `/* */`
are read, too. Triton's rule (`triton/rule.py`) shares all but a launch's form.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import get_args

from warpbook_labs.errors import BadRule
from warpbook_labs.lab.expressions import BadExpression, value
from warpbook_labs.lab.spec import DType

MOST_LAUNCHES = 64
_MOST_SCRATCH = 16
_MOST_CHARACTERS = 1000
# no `\s` and no lazy part: hostile text would have them try every pair of places
_LINE = r"^[ \t]*(?:({mark})[ \t]*)?(launch|scratch)[ \t]*:(.*)$"
#: beside `//`: what a line within a block comment begins with
_CUDA_MARK = r"//+|/?\*+"
_LAUNCH = re.compile(
    r"([A-Za-z_]\w*(?:\s*::\s*\w+)*(?:\s*<(?:[^<>]|<[^<>]*>)*>)?)\s*"
    r"<<<(.*)>>>\s*\((.*)\)\s*;?$"
)
_SCRATCH = re.compile(r"([a-z][a-z0-9_]{0,31})\s+(\w+)\s*\[(.*)\]\s*;?$")

Dim = tuple[int, int, int]


@dataclass(frozen=True)
class Scratch:
    """Memory that the submission wants between its launches."""

    name: str
    dtype: DType
    length: str


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

    def sides(self, sizes: Mapping[str, int]) -> tuple[Dim, Dim, int]:
        """Give grid, block and dynamic shared memory for a case.

        Raises:
            BadRule: an expression can't be computed.
        """
        try:
            grid, block = _dim(self.grid, sizes), _dim(self.block, sizes)
            shared_bytes = value(self.shared_bytes, sizes)
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
    return read_lines(source, _CUDA_MARK, _launch, example)


def read_lines(
    source: str, mark: str, read_launch: Callable[[str, int], Launch], example: str
) -> Rule:
    """Read the rule out of the comments of a source.

    Args:
        mark: a pattern of what such a line begins with; nothing and `*` count within
            `/* */` alone.
        read_launch: makes a launch of its text and its line.

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
            launches.append(read_launch(text, line))
        else:
            scratch.append(_scratch(text, line))
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
    if match is None or match[2] not in get_args(DType):
        raise BadRule(
            f"scratch memory is written name type[length], with a type "
            f"of {', '.join(get_args(DType))}.",
            line,
        )
    return Scratch(match[1], match[2], match[3])  # type: ignore[arg-type]


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
