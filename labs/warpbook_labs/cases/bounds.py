"""What a source asked of the machine, held against what its lab allows."""

from __future__ import annotations

import re
from collections.abc import Iterable, Mapping, Sequence
from typing import Any, NamedTuple

from warpbook_labs.lab.entry_names import plain_name
from warpbook_labs.lab.expressions import value
from warpbook_labs.lab.spec import Counted
from warpbook_labs.lab.texts import named_lines

#: counts whose names say too little in a sentence
_WORDS = {
    "h2d_bytes": "bytes over the link to the GPU",
    "d2h_bytes": "bytes over the link to the host",
    "pageable_bytes": "bytes copied from or to pageable memory",
    "device_bytes": "bytes of the GPU's memory asked for",
    "held_bytes": "bytes of the GPU's memory held at one time",
    "synchronizations": "host synchronizations",
    "total_ns": "ns of simulated time",
    "host_ns": "ns of host work",
    "compute_ns": "ns in which kernels ran",
    "longest_warp_instructions": "instructions of the busiest warp",
    "dot_multiplications": "multiplications by tl.dot for tensor cores",
    "kernel_ns": "ns of all kernels, one by one",
    "percent_of_bound": "% of the ideal time",
    "convolution_percent": "% of the time of the fastest convolutions",
    "unrepeatable": "non-deterministic launches",
}
#: what is said of one, in place of what is said of many
_ONE = {
    "branches": "branch",
    "bytes": "byte",
    "captures": "capture",
    "conflicts": "conflict",
    "copies": "copy",
    "instructions": "instruction",
    "launches": "launch",
    "requests": "request",
    "sectors": "sector",
    "synchronizations": "synchronization",
}
_OF_TENSOR_CORES = ("matrix_instructions", "dot_multiplications")
#: beyond it one says how many times
_MOST_PERCENT = 1000
_ENTRY = re.compile(r"^\.visible \.entry (\w+)\(", re.M)
#: with its operands from registers, or on Hopper from shared memory
_MATRIX = re.compile(r"^\s+(?:@\S+ )?(?:wgmma\.mma_async|mma\.sync)\.", re.M)
#: what Triton's entries are called: the kernel, then its constants
_AFTER_NAME = "__"


class Beyond(NamedTuple):
    """What lies beyond a bound and what to do, in words, and the lines they name."""

    words: str = ""
    lines: tuple[int, ...] = ()


def beyond_bounds(
    counted: Iterable[Counted],
    counts: Any,
    sizes: Mapping[str, int],
    parts: Mapping[str, Mapping[str, int]] | None = None,
    lines: Mapping[str, Sequence[int]] | None = None,
    instead: Sequence[int] = (),
) -> Beyond:
    """Say of the first count that lies beyond its bounds what to do; nothing if none.

    Args:
        parts: by count, what it is made of, in percent.
        lines: by count, the lines of the source that most of it comes of.
        instead: the lines that multiply without tensor cores.
    """
    for bound in counted:
        got = getattr(counts, bound.count)
        if is_above(bound, counts, sizes):
            most = value(bound.most, sizes)
            words = (
                f"{_count_words(bound, got, 'at most', most)}.{_split(parts, bound)}"
            )
            named = tuple((lines or {}).get(bound.count, ()))
            return Beyond(words + _line_words(named), named)
        if is_below(bound, counts, sizes):
            least = value(bound.least, sizes)
            words = f"{_count_words(bound, got, 'at least', least)}."
            return Beyond(words + _instead(bound, instead))
    return Beyond()


def is_above(bound: Counted, counts: Any, sizes: Mapping[str, int]) -> bool:
    """Tell whether more was counted than a bound allows."""
    most = bool(bound.most) and value(bound.most, sizes)
    return bool(bound.most) and getattr(counts, bound.count) > most


def is_below(bound: Counted, counts: Any, sizes: Mapping[str, int]) -> bool:
    """Tell whether less was counted than a bound asks for."""
    least = bool(bound.least) and value(bound.least, sizes)
    return bool(bound.least) and getattr(counts, bound.count) < least


def _count_words(bound: Counted, got: int, allowed: str, limit: int) -> str:
    """Say what was counted, and many percent as times."""
    words = _words(bound.count, got)
    if words.startswith("% of ") and got > _MOST_PERCENT:
        times = f"{got // 100:,}× {words.removeprefix('% of ')}"
        return f"{bound.about} Counted: {times}, {allowed} {limit / 100:,.4g}×"
    return f"{bound.about} Counted: {got:,} {words}, {allowed} {limit:,}"


def _split(parts: Mapping[str, Mapping[str, int]] | None, bound: Counted) -> str:
    """Say what a count is made of, where that is known."""
    counts = (parts or {}).get(bound.count)
    if not counts:
        return ""
    return (
        f" Of this: {', '.join(f'{name} {_share(n)}' for name, n in counts.items())}."
    )


def _line_words(lines: Sequence[int]) -> str:
    """Name the lines that most of a count comes of."""
    if not lines:
        return ""
    return f" Most of it comes from {', '.join(f'line {line}' for line in lines)}."


def _instead(bound: Counted, lines: Sequence[int]) -> str:
    """Name the lines that multiply in another way than is asked for."""
    if not lines or bound.count not in _OF_TENSOR_CORES:
        return ""
    words = named_lines(sorted(lines))
    verb = "multiplies" if len(lines) == 1 else "multiply"
    return f" {words[0].upper()}{words[1:]} {verb} without them."


def _share(percent: int) -> str:
    return f"{percent} %" if percent <= _MOST_PERCENT else f"{percent // 100:,}×"


def _words(count: str, got: int) -> str:
    words = _WORDS.get(count, count.replace("_", " "))
    if got == 1:
        return " ".join(_ONE.get(word, word) for word in words.split())
    return words


def matrix_instructions(ptx: str, kernels: Iterable[str]) -> int:
    """Count instructions for tensor cores in the programs of these kernels.

    Of a kernel that was compiled for several kinds of numbers, the fewest count.
    """
    parts = _ENTRY.split(ptx)[1:]
    by_entry = {
        entry: len(_MATRIX.findall(body))
        for entry, body in zip(parts[::2], parts[1::2], strict=True)
    }
    return sum(
        min(
            (
                count
                for entry, count in by_entry.items()
                if plain_name(kernel) == plain_name(entry)
                or entry.startswith(kernel + _AFTER_NAME)
            ),
            default=0,
        )
        for kernel in dict.fromkeys(kernels)
    )
