"""The cases of a submission: those that the lab shows, and hidden ones drawn for it."""

from __future__ import annotations

import random
from collections.abc import Iterator

from msgspec import Struct

from warpbook_labs.lab.spec import Lab, Sizes

_MOST_ALWAYS = 12
#: cases of a submission that only a GPU runs
_LARGE = 2
#: a size may be larger by such a part of it
_PART_MORE = 32


class DrawnCase(Struct, frozen=True):
    """One case, with what may be told of it."""

    about: str
    sizes: dict[str, int]
    values: str
    seed: int
    is_hidden: bool
    #: all of its sizes are at random, so others would do as well
    is_free: bool = False


def public_cases(lab: Lab) -> list[DrawnCase]:
    return [
        DrawnCase(case.about, dict(case.sizes), case.values, case.seed, False)
        for case in lab.public
    ]


def hidden_cases(lab: Lab, seed: int) -> list[DrawnCase]:
    """Draw the hidden cases of one submission.

    Every size and kind of value that must be tried is in one of them, and some are at
    random.

    Args:
        seed: of this submission; nobody else is told it.
    """
    rng = random.Random(seed)
    kinds = list(lab.hidden.values)
    rng.shuffle(kinds)
    cases = []
    for number, sizes in enumerate(_always(lab, rng)):
        cases.append((sizes, kinds[number % len(kinds)], False))
    # each kind of value at least once, at a size that has room for it
    tried = {kind for _, kind, _ in cases}
    missing = [kind for kind in kinds if kind not in tried]
    for kind in missing + rng.choices(kinds, k=lab.hidden.drawn):
        drawn = {name: _draw(of, rng) for name, of in lab.hidden.sizes.items()}
        cases.append((drawn, kind, True))
    for sizes in lab.hidden.beyond:
        cases.append((_a_little_more(sizes, rng), rng.choice(kinds), False))
    return [
        DrawnCase(
            about_hidden(sizes, kind), sizes, kind, rng.getrandbits(32), True, free
        )
        for sizes, kind, free in cases
    ]


def large_cases(lab: Lab, seed: int) -> list[DrawnCase]:
    if not any(of.device_most for of in lab.hidden.sizes.values()):
        return []
    rng = random.Random(f"large {seed}")
    cases = []
    for _ in range(_LARGE):
        sizes = {
            name: rng.randint(of.most, of.device_most or of.most)
            for name, of in lab.hidden.sizes.items()
        }
        kind = rng.choice(lab.hidden.values)
        about = f"large; {about_hidden(sizes, kind)}"
        cases.append(DrawnCase(about, sizes, kind, rng.getrandbits(32), True))
    return cases


def _always(lab: Lab, rng: random.Random) -> Iterator[dict[str, int]]:
    """Put every size that must be tried into some case; other sides at random."""
    for name, of in lab.hidden.sizes.items():
        for size in of.always[:_MOST_ALWAYS]:
            others = {
                other: rng.choice([*size.always, _draw(size, rng)])
                for other, size in lab.hidden.sizes.items()
            }
            yield {**others, name: size}


def _a_little_more(sizes: dict[str, int], rng: random.Random) -> dict[str, int]:
    """Have nobody know the sizes, though the lab's file has them."""
    return {
        name: size + rng.randint(0, size // _PART_MORE) for name, size in sizes.items()
    }


def _draw(sizes: Sizes, rng: random.Random) -> int:
    return rng.randint(sizes.least, sizes.most)


def about_hidden(sizes: dict[str, int], kind: str) -> str:
    """Say of what kind a hidden case is, without its numbers."""
    sides = ", ".join(f"{name} = {_kind_of(size)}" for name, size in sizes.items())
    return f"{sides}; values: {kind.replace('_', ' ')}"


def _kind_of(size: int) -> str:
    if size < 4:
        return str(size)
    if size & (size - 1) == 0:
        return "a power of two"
    for tile in (1024, 256, 128, 64, 32, 16):
        if size % tile == 0:
            return f"a multiple of {tile}"
    for tile in (256, 32):
        if (size + 1) % tile == 0 or (size - 1) % tile == 0:
            return f"one off a multiple of {tile}"
    if all(size % factor for factor in range(2, int(size**0.5) + 1)):
        return "a prime number"
    return "an odd length" if size % 2 else "an even length"
