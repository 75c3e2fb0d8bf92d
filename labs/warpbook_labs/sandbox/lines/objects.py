"""From which lines the objects of a learner's Python came, whatever they are called.

A tensor is known by its memory, which its views share. That a call has changed one
shows in PyTorch's own count of its versions.
"""

from __future__ import annotations

import ast
import contextlib
from collections import OrderedDict, defaultdict
from collections.abc import Callable, Iterable, Iterator, Mapping
from dataclasses import dataclass, field
from types import ModuleType
from typing import Any

#: how near each line is, in statements
Lines = dict[int, float]
_MOST_KEPT = 64


def in_order(lines: Lines) -> tuple[int, ...]:
    """Name lines, the nearest first."""
    return tuple(sorted(lines, key=lambda line: (lines[line], -line)))


def merge(into: Lines, lines: Lines, steps: float) -> None:
    """Add lines that are so many statements further away."""
    for line, distance in lines.items():
        into[line] = min(into.get(line, distance + steps), distance + steps)


def nearest(lines: Lines) -> Lines:
    """Leave the nearest of many lines."""
    if len(lines) <= _MOST_KEPT:
        return dict(lines)
    return {line: lines[line] for line in in_order(lines)[:_MOST_KEPT]}


#: counts how often a tensor was changed; None where that is not known
VersionOf = Callable[[Any], int | None]

_PLAIN = (int, float, complex, str, bytes, bool, type(None))
_MAPPINGS = (dict, defaultdict, OrderedDict)
_SEQUENCES = (list, tuple)
#: elements of a container, and objects that another is made of, that are looked at
_MOST_ELEMENTS = 16


@dataclass
class _Known:
    """One object, which is kept so that none has the number of another."""

    value: Any
    #: where it was made, and where it was changed
    made: Lines
    changed: Lines = field(default_factory=dict)
    #: objects that it was made of, which it may hold
    holds: tuple[Any, ...] = ()


class Objects:
    """What is known of objects."""

    def __init__(self, version_of: VersionOf) -> None:
        """Begin with none.

        Args:
            version_of: counts how often a tensor was changed.
        """
        self._version_of = version_of
        self._known: dict[object, _Known] = {}
        #: of tensors: how often they and their gradients were changed
        self._versions: dict[object, object] = {}

    def knows(self, value: Any) -> bool:
        return _key(value) in self._known

    def lines(self, value: Any) -> Lines:
        known = None if is_plain(value) else self._known.get(_key(value))
        if known is None:
            return {}
        merged = _own(known)
        for part in known.holds:
            for element in (part, *_elements(part)):
                held = self._known.get(_key(element))
                if held is not None:
                    merge(merged, held.changed, 1)
        return merged

    def make(self, value: Any, lines: Lines, holds: Iterable[Any] = ()) -> None:
        """Note the lines that made an object, unless it is known."""
        if is_plain(value) or self.knows(value):
            return
        held = tuple(
            other for other in holds if not is_plain(other) and other is not value
        )
        known = _Known(value, nearest(lines), holds=held[:_MOST_ELEMENTS])
        self._known[_key(value)] = known

    def change(self, value: Any, lines: Lines) -> None:
        """Note the lines of a statement that changes an object."""
        if is_plain(value):
            return
        known = self._known.get(_key(value))
        if known is None:
            self._known[_key(value)] = known = _Known(value, {})
        changed = dict(lines)
        merge(changed, known.changed, 1)
        known.changed = nearest(changed)

    def changed_tensors(self, values: Iterable[Any]) -> Iterator[Any]:
        """Give the tensors of these, or of lists of them, that have a new version."""
        for value in values:
            if is_plain(value):
                continue
            for part in (value, *_elements(value)):
                if not _is_tensor(part):
                    continue
                has_changed = False
                for key, version in self._counted(part):
                    has_changed |= self._versions.setdefault(key, version) != version
                    self._versions[key] = version
                if has_changed:
                    yield part

    def _counted(self, tensor: Any) -> Iterator[tuple[object, object]]:
        """Count the changes of a tensor's memory and of its gradient."""
        with contextlib.suppress(Exception):
            yield _key(tensor), self._version_of(tensor)
            if tensor.is_leaf and tensor.requires_grad:
                slope = tensor.grad
                of = None if slope is None else (id(slope), self._version_of(slope))
                yield ("gradient", id(tensor)), of


def version_of(tensor: Any) -> int | None:
    """Count how often a tensor was changed, as PyTorch does."""
    return int(tensor._version)


def is_plain(value: Any) -> bool:
    """Tell what is no object of its own: a number, a text, or a module."""
    return isinstance(value, (*_PLAIN, ModuleType))


def part_of(node: ast.expr, names: Mapping[str, Any]) -> Any:
    """Find an object by an expression such as `self.held[key]`; None if there is none.

    No code of the source's is run for it.
    """
    if isinstance(node, ast.Constant):
        return node.value
    if isinstance(node, ast.Name):
        return names.get(node.id)
    if isinstance(node, ast.Attribute):
        held = part_of(node.value, names)
        own = getattr(held, "__dict__", None) if not is_plain(held) else None
        return own.get(node.attr) if type(own) is dict else None
    if isinstance(node, ast.Subscript):
        container = part_of(node.value, names)
        if type(container) in (*_MAPPINGS, *_SEQUENCES):
            key = part_of(node.slice, names)
            if isinstance(key, _PLAIN):
                with contextlib.suppress(LookupError, TypeError):
                    return container[key] if _has(container, key) else None
    return None


def _has(container: Any, key: object) -> bool:
    # else a `defaultdict` would make it
    return key in container if isinstance(container, dict) else isinstance(key, int)


def _own(known: _Known) -> Lines:
    lines = dict(known.made)
    merge(lines, known.changed, 0)
    return lines


def _elements(value: Any) -> tuple[Any, ...]:
    if type(value) in _SEQUENCES:
        return tuple(value[:_MOST_ELEMENTS])
    return ()


def _is_tensor(value: Any) -> bool:
    kind = type(value)
    return kind.__module__.partition(".")[0] == "torch" and kind.__name__ in (
        "Tensor",
        "Parameter",
    )


def _key(value: Any) -> object:
    """Name an object; a tensor by where its numbers are, which its views share."""
    if _is_tensor(value):
        with contextlib.suppress(Exception):
            return "storage", int(value.untyped_storage().data_ptr())
    return id(value)
