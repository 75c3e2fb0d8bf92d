"""Values of the lab, and what is right."""

from __future__ import annotations

from typing import Any

import numpy as np

Arrays = dict[str, Any]
#: keys are whole numbers of 31 bits; a negative one is null
_KEY_MASK = 2**31 - 1
_SMALLEST, _LARGEST = -1000, 1000
#: kinds whose rows all count and have keys of their own: the fullest tables
_DENSE = ("distinct", "strided", "extremes")


def _keys(groups: Any, rng: np.random.Generator) -> Any:
    """Give each group a key of 31 bits, and no two of them the same."""
    odd = 2 * int(rng.integers(2**28, 2**29)) + 1
    added = int(rng.integers(0, 2**31))
    return (groups.astype(np.int64) * odd + added) & _KEY_MASK


def _groups(
    sizes: dict[str, int], values: str, rng: np.random.Generator
) -> tuple[Any, Any]:
    """Draw the group of each row and each probe; about half of those are of no row."""
    n, m = sizes["n"], sizes["m"]
    count = max(n // int(rng.integers(1, 5)), 1)
    rows: Any = rng.integers(0, count, n)
    probes: Any = rng.integers(0, 2 * count, m)
    # many of no row: a table is looked through from everywhere
    probes = np.where(rng.random(m) < 0.3, count + rng.integers(0, 4 * m, m), probes)
    if values == "skewed":
        # half of the rows, and of the probes, have one key
        rows[rng.random(n) < 0.5] = 0
        probes[rng.random(m) < 0.5] = 0
    elif values in _DENSE:
        rows, probes = rng.permutation(n), rng.integers(0, 2 * n + 60, m)
        # key 0 of those that are no random numbers
        probes[0] = 0
    elif values == "one_key":
        rows[:], probes = 0, rng.integers(0, 2, m)
    if m > 1:
        # one that a grid of too few threads leaves out
        probes[-1] = rows[-1]
    return rows, probes


def inputs(sizes: dict[str, int], values: str, rng: np.random.Generator) -> Arrays:
    """Draw keys, amounts, probes, and the least amount that counts."""
    rows, probes = _groups(sizes, values, rng)
    n, m = sizes["n"], sizes["m"]
    both: Any = np.concatenate([rows, probes])
    if values == "strided":
        # alike in their low bits
        both = both * 4096
    elif values == "extremes":
        # the smallest keys, and the largest
        both = np.where(both % 2 == 0, both // 2, _KEY_MASK - both // 2)
    else:
        both = _keys(both, rng)
    if values == "nulls":
        both = np.where(rng.random(n + m) < 0.4, -both - 1, both)
        both[rng.random(n + m) < 0.1] = -1
    amount = rng.integers(_SMALLEST, _LARGEST + 1, n)
    least = int(rng.integers(-300, 300))
    if values in _DENSE:
        least = _SMALLEST
    elif values == "nothing_left":
        amount, least = np.minimum(amount, 899), 900
    elif values == "at_the_least":
        amount = least + rng.integers(-1, 2, n)
    keys = both.astype(np.int32)
    return {
        "key": keys[:n],
        "amount": amount.astype(np.int32),
        "probe": keys[n:],
        "least": least,
    }


def expected(given: Arrays, sizes: dict[str, int]) -> Arrays:
    """Group what the filter leaves, and find the group of each probe."""
    key, amount, probe = given["key"], given["amount"], given["probe"]
    is_taken = (key >= 0) & (amount >= given["least"])
    groups, of_row = np.unique(key[is_taken], return_inverse=True)
    counts = np.bincount(of_row, minlength=len(groups) + 1)
    totals = np.zeros(len(groups) + 1, np.int64)
    np.add.at(totals, of_row, amount[is_taken].astype(np.int64))
    # the last group has no rows: of probes that find none
    place: Any = np.searchsorted(groups, probe)
    is_found = np.append(groups, -1)[place] == probe
    place[~is_found | (probe < 0)] = len(groups)
    return {"matches": counts[place], "total": totals[place]}


def tolerance(given: Arrays, sizes: dict[str, int], right: Arrays) -> Arrays:
    """Allow nothing."""
    return {"matches": 0.0, "total": 0.0}
