"""Hidden cases fitted to how a source is launched: a grid as full as can be, and more.

A grid that is rounded up by too little is large enough for nearly all sizes. What it
leaves out shows at the last size before the grid grows, which depends on the source.
One that grows no more from some size on must have its threads take further elements:
whether they do shows just above that size. And one that grows with the square of a size
is too much for the CPU at sizes beyond.
"""

from __future__ import annotations

import contextlib
import math
from collections.abc import Callable, Mapping, Sequence
from itertools import cycle

import msgspec

from warpbook_labs.cases.launch_limits import MOST_THREADS
from warpbook_labs.cases.sampling import DrawnCase, about_hidden
from warpbook_labs.errors import BadRule
from warpbook_labs.lab.launch_rule import Dim, Launch, Rule
from warpbook_labs.lab.spec import Lab, Sizes

#: elements of a case that the CPU runs, and what part of its size one is above a cap
_MOST_ABOVE, _PART_ABOVE = 300_000, 32


def fitted(lab: Lab, rule: Rule, cases: Sequence[DrawnCase]) -> list[DrawnCase]:
    """Fit every other case that is drawn at random to the launches of a rule in turn.

    Raises:
        BadRule: a grid can't be computed; so do those below.
    """
    fit = list(cases)
    of_sizes = lab.hidden.sizes
    least = {name: of.least for name, of in of_sizes.items()}
    most = {name: of.most for name, of in of_sizes.items()}
    launches = {launch.grid: launch for launch in rule.launches}.values()
    growing = [one for one in launches if one.sides(least)[0] != one.sides(most)[0]]
    free = [place for place, case in enumerate(cases) if case.is_free]
    for place, launch in zip(free[::-2], cycle(growing), strict=False):
        fit[place] = _filling(lab, launch, cases[place])
    for name in of_sizes if lab.hidden.beyond else ():
        sizes = [case.sizes[name] for case in fit]
        place = sizes.index(max(sizes))
        # far beyond the lab's sizes a rule need not hold
        with contextlib.suppress(BadRule):
            fit[place] = _above_caps(lab, rule, name, fit[place])
    return [_within_reach(lab, rule, case) for case in fit]


def _within_reach(lab: Lab, rule: Rule, case: DrawnCase) -> DrawnCase:
    """Halve sizes beyond the lab's until the CPU can run that many threads."""
    sizes = dict(case.sizes)
    while any(_threads(launch, sizes) > MOST_THREADS for launch in rule.launches):
        name = max(sizes, key=lambda name: sizes[name])
        if not case.is_hidden or sizes[name] <= lab.hidden.sizes[name].most:
            return case
        sizes[name] //= 2
    return case if sizes == case.sizes else _of_sizes(case, sizes)


def _threads(launch: Launch, sizes: Mapping[str, int]) -> int:
    grid, block, _ = launch.sides(sizes)
    return math.prod(grid) * math.prod(block)


def _filling(lab: Lab, launch: Launch, case: DrawnCase) -> DrawnCase:
    """Give a case the last sizes before the grid of a launch grows."""
    sizes = dict(case.sizes)
    for name, of in lab.hidden.sizes.items():
        sizes[name] = _fullest(
            sizes[name], of.least, of.most, _grids(launch, sizes, name)
        )
    return _of_sizes(case, sizes)


def _above_caps(lab: Lab, rule: Rule, name: str, case: DrawnCase) -> DrawnCase:
    """Enlarge a size until no launch's grid grows any more, if the CPU can run that."""
    least = {other: max(of.least, 1) for other, of in lab.hidden.sizes.items()}
    of = lab.hidden.sizes[name]
    capped = max(_cap(of, _grids(launch, least, name)) for launch in rule.launches)
    above = capped + capped // _PART_ABOVE
    if case.is_hidden and case.sizes[name] < above <= min(
        of.device_most or of.most, _MOST_ABOVE
    ):
        return _of_sizes(case, {**least, name: above})
    return case


def _cap(of: Sizes, grid: Callable[[int], Dim]) -> int:
    """Return the size from which on a grid grows no more; 0 if cases are above it."""
    most = of.device_most or of.most
    if grid(of.most) == grid(most) or grid(most) != grid(2 * most):
        return 0
    return _last_unlike(of.most, most, grid) + 1


def _grids(launch: Launch, sizes: Mapping[str, int], name: str) -> Callable[[int], Dim]:
    """Return what computes the grid of a launch from one of its sizes."""
    others = dict(sizes)
    return lambda size: launch.sides({**others, name: size})[0]


def _of_sizes(case: DrawnCase, sizes: dict[str, int]) -> DrawnCase:
    about = about_hidden(sizes, case.values)
    return msgspec.structs.replace(case, sizes=sizes, about=about)


def _fullest(size: int, least: int, most: int, grid: Callable[[int], Dim]) -> int:
    """Give the last size before the grid grows, near to a size."""
    now = grid(size)
    if grid(most) != now:
        return _last_like(size, most, grid)
    if grid(least) == now:
        # the grid is the same for all sizes
        return size
    return _last_unlike(least, size, grid)


def _last_like(size: int, other: int, grid: Callable[[int], Dim]) -> int:
    """Give the last size with the grid of `size`, where a larger one has another."""
    now = grid(size)
    while other - size > 1:
        middle = (size + other) // 2
        size, other = (middle, other) if grid(middle) == now else (size, middle)
    return size


def _last_unlike(other: int, size: int, grid: Callable[[int], Dim]) -> int:
    """Give the last size before the grid of `size`, where a smaller one has another."""
    now = grid(size)
    while size - other > 1:
        middle = (size + other) // 2
        size, other = (middle, other) if grid(middle) == now else (size, middle)
    return other
