"""What a run leaves beside numbers: types, text, memory that is shared, random states.

A liberal edit of a cell must leave all of it as the cell does. What another run of the
same cell leaves otherwise can't be compared.
"""

from __future__ import annotations

import enum
from collections.abc import Callable, Iterable, Iterator
from itertools import chain
from typing import Any, NamedTuple

import numpy as np
import torch

from warpbook.kernel.trying.outputs import (
    LAST_VALUE,
    Outputs,
    compare,
    copied,
    is_of_person,
)
from warpbook.kernel.trying.refusals import Refused
from warpbook.kernel.trying.snapshot import Snapshot

#: a run that leaves more is not compared
_MOST = 20_000
_MOST_LEVELS = 4
_NUMBERS = (bool, int, float, complex, np.number)
_TEXTS = (str, bytes, type(None), enum.Enum, torch.dtype, torch.device, torch.Size)


class Forms(NamedTuple):
    """How results look, by their way from a name."""

    kinds: dict[str, str]
    #: ways that lead to one memory
    shared: frozenset[frozenset[str]]
    printed: str
    #: of the process: states of random numbers, settings
    others: dict[str, str]
    #: numbers and tensors that objects hold
    values: Outputs


def forms_of(snapshot: Snapshot, last: Any, printed: str) -> Forms:
    """Look at what a run has left.

    Args:
        snapshot: the state in which it began.
        last: its last expression's value.
        printed: what it wrote to standard output.

    Raises:
        Refused: that is too much to compare.
    """
    named = [
        (name, value)
        for name, value in snapshot.names.changed().items()
        if not name.startswith("_")
    ]
    held = snapshot.objects.held()
    left = [*named, *held, (LAST_VALUE, last)]
    kinds, memory = dict[str, str](), list[tuple[str, Any]]()
    for path, value in chain.from_iterable(_parts(*one, 0) for one in left):
        kinds[path] = _kind(value)
        if isinstance(value, torch.Tensor | np.ndarray):
            memory.append((path, value))
        if len(kinds) > _MOST:
            raise Refused("the cell leaves more results than can be compared.")
    results = {path for path, _ in memory}
    groups = _shared([*memory, *snapshot.tensors.places()])
    shared = frozenset(group for group in groups if group & results)
    return Forms(kinds, shared, printed, snapshot.globals.changed(), copied(held))


def unlike(before: Forms, after: Forms, is_result: Callable[[str], bool]) -> str:
    """Tell in words what differs; empty where nothing does.

    Args:
        before: of the cell.
        after: of the edited cell.
        is_result: tells of a way whether it must be there after both.
    """
    if before.printed != after.printed:
        return "what it prints differs"
    if before.others != after.others:
        (name, *_) = sorted(before.others.items() ^ after.others.items())
        return f"{name[0]} differs"
    for path, kind in before.kinds.items():
        other = after.kinds.get(path)
        if other != kind and (other is not None or is_result(path)):
            return f"{path} is {other or 'not there'} instead of {kind}"
    for path in after.kinds.keys() - before.kinds.keys():
        if is_result(path):
            return f"{path} is not a result of both"
    values, others = (
        {path: forms.values[path] for path in forms.values if is_result(path)}
        for forms in (before, after)
    )
    difference = compare(values, others)
    if difference.differs:
        return f"{difference.mismatch or difference.name} differs"
    of_results = [
        {frozenset(filter(is_result, group)) for group in forms.shared}
        for forms in (before, after)
    ]
    for group in of_results[0] ^ of_results[1]:
        if len(group) > 1:
            return f"{', '.join(sorted(group)[:2])} do not share memory in both"
    return ""


def _parts(path: str, value: Any, level: int) -> Iterator[tuple[str, Any]]:
    yield path, value
    if level == _MOST_LEVELS:
        return
    items: Iterable[tuple[str, Any]] = ()
    if isinstance(value, list | tuple):
        items = ((f"{path}[{at}]", item) for at, item in enumerate(value))
    elif isinstance(value, dict):
        items = ((f"{path}[{key!r:.30}]", item) for key, item in value.items())
    elif is_of_person(value):
        items = ((f"{path}.{name}", item) for name, item in vars(value).items())
    for inner, item in items:
        yield from _parts(inner, item, level + 1)


def _kind(value: Any) -> str:
    name = type(value).__name__
    if isinstance(value, torch.Tensor):
        grad = " with a gradient" if value.requires_grad else ""
        shape = tuple(value.shape)
        return f"{name} {value.dtype} {shape} on {value.device}{grad}"
    if isinstance(value, np.ndarray):
        text = "" if value.dtype.kind in "fiubc" else f" {value.tobytes()!r}"
        return f"{name} {value.dtype} {value.shape}{text}"
    if isinstance(value, _NUMBERS):
        return name
    if isinstance(value, _TEXTS):
        return f"{name} {value!r}"
    if isinstance(value, list | tuple):
        return f"{name} of {len(value)}"
    if isinstance(value, dict):
        return f"{name} of {list(value)!r:.10000}"
    if isinstance(value, set | frozenset):
        return f"{name} of {sorted(map(repr, value))!r:.10000}"
    return name


def _shared(places: list[tuple[str, Any]]) -> list[frozenset[str]]:
    """Return the ways to overlapping memory, group by group."""
    spans = sorted((*span, path) for path, value in places for span in _span(value))
    groups, group = list[set[str]](), set[str]()
    device, end = "", 0
    for on, first, last, path in spans:
        if on != device or first >= end:
            group = set()
            groups.append(group)
            device, end = on, last
        group.add(path)
        end = max(end, last)
    return [frozenset(one) for one in groups if len(one) > 1]


def _span(value: Any) -> Iterator[tuple[str, int, int]]:
    """Return where memory begins and ends; nothing where there is none."""
    if isinstance(value, np.ndarray):
        value = torch.from_numpy(value) if _is_plain(value) else torch.empty(0)
    if value.layout != torch.strided or not value.numel():
        return
    steps = zip(value.shape, value.stride(), strict=True)
    length = 1 + sum((size - 1) * step for size, step in steps)
    first = value.data_ptr()
    yield str(value.device), first, first + length * value.element_size()


def _is_plain(array: np.ndarray[Any, Any]) -> bool:
    is_known = array.dtype.kind in "fiubc" and array.flags.writeable
    return is_known and min(array.strides, default=0) >= 0
