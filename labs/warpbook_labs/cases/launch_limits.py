"""What CUDA launches, and whether a rule's launches are that at a lab's largest sizes.

Cases without a GPU are small. A grid that fits them may be too large for those that
the lab has for a GPU, and that is known without running any.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping

from warpbook_labs.errors import BadRule
from warpbook_labs.lab.launch_rule import Dim, Rule
from warpbook_labs.lab.spec import Lab

#: of a launch that the CPU runs
MOST_THREADS = 1 << 27
_MAX_THREADS_OF_BLOCK = 1024
#: CUDA C++ Programming Guide, "Technical Specifications per Compute Capability"
_MOST_GRID = ((1 << 31) - 1, 65_535, 65_535)
_MOST_BLOCK = (1024, 1024, 64)


def refusal(grid: Dim, block: Dim) -> str:
    """Say why no GPU launches a grid of such blocks; nothing if one does."""
    if min(*grid, *block) < 1:
        return f"Every side of grid {grid} and block {block} must be at least 1."
    threads = block[0] * block[1] * block[2]
    if threads > _MAX_THREADS_OF_BLOCK:
        return (
            f"A block of {block} has {threads:,} threads; there may be "
            f"{_MAX_THREADS_OF_BLOCK:,}."
        )
    for what, sides, most in (
        ("grid", grid, _MOST_GRID),
        ("block", block, _MOST_BLOCK),
    ):
        if any(side > limit for side, limit in zip(sides, most, strict=True)):
            return (
                f"A {what} of {sides} can't be launched: its sides may be "
                f"{' x '.join(f'{side:,}' for side in most)} at most."
            )
    return ""


def refuse_at_large_sizes(lab: Lab, rule: Rule) -> None:
    """Refuse launches that no GPU does with the sizes that the lab has for one.

    Raises:
        BadRule: a launch is too large.
    """
    for when, sizes in _large_sizes(lab):
        for launch in rule.launches:
            grid, block, _ = launch.sides(sizes)
            words = refusal(grid, block)
            if words:
                raise BadRule(f"{words} So it is {when}.", launch.line)


def _large_sizes(lab: Lab) -> Iterator[tuple[str, Mapping[str, int]]]:
    if lab.speed is not None:
        text = ", ".join(f"{name} = {size:,}" for name, size in lab.speed.sizes.items())
        yield f"with {text}, for which the lab asks how fast it is", lab.speed.sizes
    hidden = lab.hidden.sizes
    if any(size.device_most for size in hidden.values()):
        sizes = {name: size.device_most or size.most for name, size in hidden.items()}
        yield "with the largest sizes that a GPU is asked for", sizes
