"""What a run leaves beside numbers: types, text, memory that is shared, random states.

A liberal edit of a cell must leave all of it as the cell does. What another run of the
same cell leaves otherwise can't be compared, nor can what is out of sight.
"""

from __future__ import annotations

import contextlib
import logging
import re
from collections.abc import Callable, Container, Iterator
from typing import Any, NamedTuple

import numpy as np
import torch
from IPython.utils.capture import CapturedIO

from warpbook.kernel.trying.outputs import LAST_VALUE, Outputs, compare, copied
from warpbook.kernel.trying.parts import is_of_float32, parts_of
from warpbook.kernel.trying.snapshot import Snapshot

_NUMBERS = (bool, int, float, complex, np.number)


#: as a tensor's kind ends
_STRIDES = re.compile(r" strides \[[\d, ]*\]$")
#: as it begins, and where the tensor is
_DEVICE = re.compile(r"^(\w+ torch\.\w+ \([\d, ]*\)) on (cpu|cuda:\d+)")
#: what a tensor's text says of its device and of its gradient
_ORIGIN = re.compile(r",\s+(device='cuda:\d+'|grad_fn=<\w+>)")


class Sight(NamedTuple):
    """What of a run is looked at."""

    #: whether a way leads to a result, not to a step towards one
    is_result: Callable[[str], bool]
    #: ways to numbers that are compared elsewhere
    known: Container[str]
    #: names that only the edit binds
    of_edit: Container[str] = ()


class Forms(NamedTuple):
    """How results look, by their way from a name."""

    kinds: dict[str, str]
    #: of those that can't be compared, what they are
    unknown: dict[str, str]
    #: ways that lead to one memory
    shared: frozenset[frozenset[str]]
    #: all that was written, shown and logged
    said: str
    #: of the process: states of random numbers, settings
    others: dict[str, str]
    #: numbers and tensors that are compared nowhere else
    values: Outputs
    #: numbers of Python's own precision, exactly
    floats: dict[str, str]


def forms_of(snapshot: Snapshot, last: Any, said: str, sight: Sight) -> Forms:
    """Look at what a run has left.

    Args:
        snapshot: the state in which it began.
        last: its last expression's value.
        said: what it wrote, showed and logged.
        sight: what is looked at.

    Raises:
        Refused: that is too much to compare.
    """
    named = snapshot.names.changed().items()
    own = ((name, one) for name, one in named if name != "_" and name[:2] != "__")
    left = [*own, *snapshot.objects.held(), (LAST_VALUE, last)]
    # an object is known by the first way to it: that of a result, or of the cell's own
    left.sort(
        key=lambda one: (not sight.is_result(one[0]), one[0] in sight.of_edit, one[0])
    )
    forms = Forms({}, {}, frozenset(), said, snapshot.globals.changed(), {}, {})
    memory, values = list[tuple[str, Any]](), list[tuple[str, Any]]()
    for path, kind, value, is_comparable in parts_of(left):
        forms.kinds[path] = kind
        if not is_comparable:
            forms.unknown[path] = kind
        elif isinstance(value, torch.Tensor | np.ndarray):
            memory.append((path, value))
        if isinstance(value, (*_NUMBERS, torch.Tensor, np.ndarray)):
            values.append((path, value))
        if type(value) is float and not is_of_float32(value):
            forms.floats[path] = repr(value)
    results = {path for path, _ in memory}
    groups = _shared([*memory, *snapshot.tensors.places()])
    shared = frozenset(group for group in groups if group & results)
    compared = copied(one for one in values if one[0] not in sight.known)
    return forms._replace(shared=shared, values=compared)


def text_of(captured: CapturedIO, logged: list[str]) -> str:
    """Give all that a run wrote, showed and logged."""
    shown = [repr(one.data) for one in captured.outputs]
    return "\n".join([captured.stdout, captured.stderr, *shown, *logged])


@contextlib.contextmanager
def logs() -> Iterator[list[str]]:
    """Give the messages that are logged within, wherever handlers write them."""
    logged, made = list[str](), logging.getLogRecordFactory()

    def noted(*arguments: Any, **words: Any) -> logging.LogRecord:
        record = made(*arguments, **words)
        logged.append(f"{record.levelname} {record.name} {record.getMessage()}")
        return record

    logging.setLogRecordFactory(noted)
    try:
        yield logged
    finally:
        logging.setLogRecordFactory(made)


def incomparable(before: Forms, after: Forms, is_result: Callable[[str], bool]) -> str:
    """Tell in words what runs leave that can't be compared; empty if there is none."""
    for forms, other in ((before, after), (after, before)):
        for path, kind in forms.unknown.items():
            if is_result(path) or path in other.kinds:
                return f"leaves {path}, {kind}, which can't be compared"
    return ""


def in_any_order(forms: Forms) -> Forms:
    """Give forms without the order in memory of tensors' elements."""
    kinds = {path: _STRIDES.sub("", kind) for path, kind in forms.kinds.items()}
    return forms._replace(kinds=kinds)


def moved(before: Forms, after: Forms) -> Iterator[tuple[str, str]]:
    """Give the ways to tensors that are on another device, and which it is."""
    for path, kind in before.kinds.items():
        other = after.kinds.get(path, "")
        if _is_moved(kind, other) and (found := _DEVICE.match(other)):
            yield path, found[2]


def _is_moved(kind: str, other: str) -> bool:
    return kind != other and _DEVICE.sub(r"\1", kind) == _DEVICE.sub(r"\1", other)


def unlike(before: Forms, after: Forms, is_result: Callable[[str], bool]) -> str:
    """Tell in words what differs; empty where nothing does.

    Args:
        before: of the cell.
        after: of the edited cell.
        is_result: whether a way must be there after both, and on the same device.
    """
    if _ORIGIN.sub("", before.said) != _ORIGIN.sub("", after.said):
        return "what it prints, shows or logs differs"
    if before.others != after.others:
        (name, *_) = sorted(before.others.items() ^ after.others.items())
        return f"{name[0]} differs"
    for path, kind in before.kinds.items():
        other = after.kinds.get(path)
        if other == kind:
            continue
        if is_result(path) or other is not None and not _is_moved(kind, other):
            return f"{path} is {other or 'not there':.200} instead of {kind:.200}"
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
