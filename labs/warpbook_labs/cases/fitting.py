"""One hidden case fitted to how a source is launched: its grid is as full as can be.

A grid that is rounded up by too little is large enough for nearly all sizes. What it
leaves out shows at the last size before the grid grows, which depends on the source.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence

import msgspec

from warpbook_labs.cases.sampling import DrawnCase, about_hidden
from warpbook_labs.errors import BadRule
from warpbook_labs.lab.launch_rule import Rule
from warpbook_labs.lab.spec import Lab


def fitted(lab: Lab, rule: Rule, cases: Sequence[DrawnCase]) -> list[DrawnCase]:
    """Fit the sizes of the last case that is drawn at random to a launch rule."""
    free = [place for place, case in enumerate(cases) if case.is_free]
    fit = list(cases)
    if not free:
        return fit
    case, sizes = cases[free[-1]], dict(cases[free[-1]].sizes)

    def blocks(name: str, size: int) -> list[int]:
        grids = [launch.sides({**sizes, name: size})[0] for launch in rule.launches]
        return [x * y * z for x, y, z in grids]

    for name, of in lab.hidden.sizes.items():
        try:
            sizes[name] = _fullest(
                sizes[name],
                of.least,
                of.most,
                lambda size, name=name: blocks(name, size),  # type: ignore[misc]
            )
        except BadRule:
            # the check itself tells of it, if it matters
            continue
    about = about_hidden(sizes, case.values)
    fit[free[-1]] = msgspec.structs.replace(case, sizes=sizes, about=about)
    return fit


def _fullest(
    size: int, least: int, most: int, blocks: Callable[[int], list[int]]
) -> int:
    """Give the last size before the grid grows, near to a size."""
    now = blocks(size)
    if blocks(most) != now:
        return _last_like(size, most, blocks)
    if blocks(least) == now:
        # the grid is the same for all sizes
        return size
    return _last_unlike(least, size, blocks)


def _last_like(size: int, other: int, blocks: Callable[[int], list[int]]) -> int:
    """Give the last size with the grid of `size`, where a larger one has another."""
    now = blocks(size)
    while other - size > 1:
        middle = (size + other) // 2
        size, other = (middle, other) if blocks(middle) == now else (size, middle)
    return size


def _last_unlike(other: int, size: int, blocks: Callable[[int], list[int]]) -> int:
    """Give the last size before the grid of `size`, where a smaller one has another."""
    now = blocks(size)
    while size - other > 1:
        middle = (size + other) // 2
        size, other = (middle, other) if blocks(middle) == now else (size, middle)
    return other
