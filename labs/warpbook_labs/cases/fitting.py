"""Hidden cases fitted to how a source is launched: a grid as full as can be, and more.

A grid that is rounded up by too little is large enough for nearly all sizes. What it
leaves out shows at the last size before the grid grows, which depends on the source.
One that grows no more from some size on must have its threads take further elements:
whether they do shows just above that size.
"""

from __future__ import annotations

import contextlib
from collections.abc import Callable, Sequence

import msgspec

from warpbook_labs.cases.sampling import DrawnCase, about_hidden
from warpbook_labs.errors import BadRule
from warpbook_labs.lab.launch_rule import Rule
from warpbook_labs.lab.spec import Lab

#: elements of a case that the CPU runs, and what part of its size one is above a cap
_MOST_ABOVE, _PART_ABOVE = 300_000, 32


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
    with contextlib.suppress(BadRule):
        fit[-1] = _above_a_cap(lab, rule, fit[-1])
    return fit


def _above_a_cap(lab: Lab, rule: Rule, case: DrawnCase) -> DrawnCase:
    """Enlarge a size at which the grid grows no more, if the CPU can run that.

    Raises:
        BadRule: the grid can't be computed.
    """
    if not lab.hidden.beyond or not case.is_hidden:
        return case
    least = {name: max(of.least, 1) for name, of in lab.hidden.sizes.items()}
    for name, of in lab.hidden.sizes.items():

        def blocks(size: int, name: str = name) -> list[int]:
            sides = [launch.sides({**least, name: size})[0] for launch in rule.launches]
            return [x * y * z for x, y, z in sides]

        most = of.device_most or of.most
        if blocks(of.most) == blocks(most):
            continue
        capped = _last_unlike(of.most, most, blocks) + 1
        above = capped + capped // _PART_ABOVE
        if case.sizes[name] < above <= min(most, _MOST_ABOVE):
            sizes = {**least, name: above}
            about = about_hidden(sizes, case.values)
            return msgspec.structs.replace(case, sizes=sizes, about=about)
    return case


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
