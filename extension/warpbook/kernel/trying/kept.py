"""One thing that a cell can change, as it was: how it is read, and how put back."""

from __future__ import annotations

import collections
import operator
import random
import types
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from functools import partial
from typing import Any

import numpy as np
import torch

MISSING = object()
CONTAINERS = (dict, list, set, collections.deque, bytearray)
RANDOM = (torch.Generator, np.random.Generator, np.random.RandomState, random.Random)
#: of a class; what Python itself keeps there is left alone
_NOT_ATTRIBUTES = ("__dict__", "__weakref__", "__doc__", "__module__")
_PYTHON_CLASS = 1 << 9


def is_same_value(now: Any, then: Any) -> bool:
    """Return whether two values are equal; a tensor is one value."""
    if isinstance(then, torch.Tensor):
        return bool(torch.equal(now, then))
    return bool(now == then)


@dataclass
class Kept:
    """Something that can change, and what it was."""

    #: the way that leads to it
    path: str
    read: Callable[[], Any]
    write: Callable[[Any], object]
    is_same: Callable[[Any, Any], bool] = is_same_value
    then: Any = MISSING

    def __post_init__(self) -> None:
        """Read it, unless what it was is given."""
        if self.then is MISSING:
            self.then = self.read()

    def differs(self) -> bool:
        """Return whether it is not as it was."""
        try:
            return not self.is_same(self.read(), self.then)
        except RuntimeError:
            # settings of torch that contradict each other for the moment
            return True

    def restore(self) -> None:
        """Put it back."""
        if self.differs():
            self.write(self.then)


def keep_container(path: str, value: Any) -> Kept:
    """Keep what a container holds; the things held are not copied."""
    if isinstance(value, bytearray):
        write = partial(value.__setitem__, slice(None))
        return Kept(path, lambda: bytes(value), write)
    kind = next(kind for kind in CONTAINERS if isinstance(value, kind))
    return Kept(path, lambda: kind(value), partial(_refill, value), _holds_same)


def keep_instance(path: str, value: Any) -> Kept:
    """Keep what the attributes of an object, or of a class, are bound to."""
    return Kept(
        path,
        lambda: attributes(value) or {},
        partial(_set_attributes, value),
        _holds_same,
    )


def keep_cell(path: str, cell: types.CellType) -> Kept:
    """Keep what a closure's variable is bound to."""

    def read() -> Any:
        try:
            return [cell.cell_contents]
        except ValueError:
            # not bound yet
            return []

    def write(then: list[Any]) -> None:
        if then:
            (cell.cell_contents,) = then
        else:
            del cell.cell_contents

    return Kept(path, read, write, _holds_same)


def keep_random_state(path: str, generator: Any) -> Kept:
    """Keep where a generator of random numbers is: torch's, NumPy's or Python's."""
    if isinstance(generator, torch.Generator):
        return Kept(path, generator.get_state, generator.set_state)
    if isinstance(generator, random.Random):
        return Kept(path, generator.getstate, generator.setstate)
    if isinstance(generator, np.random.Generator):
        bits = generator.bit_generator
        write: Callable[[Any], None] = partial(setattr, bits, "state")
        return Kept(path, lambda: bits.state, write, _is_same_text)
    read = partial(generator.get_state, legacy=False)
    return Kept(path, read, generator.set_state, _is_same_text)


def keep_names(namespace: dict[str, Any]) -> Kept:
    """Keep what the names of a namespace are bound to.

    New names that torch.compile keeps there stay: the code that it has compiled reads
    them as globals, and it runs that code again for whoever compiles the same.
    """
    then = dict(namespace)

    def is_compilers(name: str) -> bool:
        return name not in then and _is_made_by_compiler(name)

    def read() -> dict[str, Any]:
        return {k: v for k, v in namespace.items() if not is_compilers(k)}

    def write(then: dict[str, Any]) -> None:
        theirs = {k: v for k, v in namespace.items() if is_compilers(k)}
        _refill_dict(namespace, {**then, **theirs})

    return Kept("the names of the notebook", read, write, _holds_same)


def _is_made_by_compiler(name: object) -> bool:
    """Return whether torch.compile has made up a name.

    It begins them with two underscores (`__compiled_fn_1`, `__resume_at_4_2`,
    `__import_torch`), or ends them with its number of the code (`_7f0a12_c1/0`).
    """
    if not isinstance(name, str):
        return False
    return (name.startswith("__") and not name.endswith("__")) or "/" in name


def attributes(value: Any) -> dict[str, Any] | None:
    """Return an object's own attributes; None where its state is out of sight."""
    if isinstance(value, type):
        return {k: v for k, v in vars(value).items() if k not in _NOT_ATTRIBUTES}
    kind = type(value)
    own = getattr(value, "__dict__", None) if kind.__dictoffset__ else None
    slots = {}
    for name in _slot_names(kind):
        try:
            slots[name] = object.__getattribute__(value, name)
        except AttributeError:
            # not set yet
            continue
    if isinstance(own, dict):
        return {**own, **slots}
    is_python_class = kind.__flags__ & _PYTHON_CLASS and "__slots__" in vars(kind)
    return slots if slots or is_python_class else None


def _slot_names(kind: type) -> Iterator[str]:
    for owner in kind.__mro__:
        names = vars(owner).get("__slots__", ())
        for name in (names,) if isinstance(names, str) else names:
            if name not in ("__dict__", "__weakref__"):
                is_private = name.startswith("__") and not name.endswith("__")
                yield f"_{owner.__name__.lstrip('_')}{name}" if is_private else name


def _set_attributes(value: Any, then: dict[str, Any]) -> None:
    write, drop = object.__setattr__, object.__delattr__
    names = set(_slot_names(type(value)))
    if isinstance(value, type):
        write, drop = type.__setattr__, type.__delattr__
        names = {*then, *(attributes(value) or ())}
    elif isinstance(own := getattr(value, "__dict__", None), dict):
        _refill_dict(own, {k: v for k, v in then.items() if k not in names})
    now = attributes(value) or {}
    for name in names:
        if name not in then and name in now:
            drop(value, name)
        elif name in then and now.get(name, MISSING) is not then[name]:
            write(value, name, then[name])


def _holds_same(now: Any, then: Any) -> bool:
    if len(now) != len(then):
        return False
    if isinstance(then, set):
        return all(map(then.__contains__, now))
    if isinstance(then, dict) and not all(map(_is, now.values(), then.values())):
        return False
    # the order of keys is part of it: parameters are gone through in theirs
    return all(map(_is, now, then))


def _is(one: Any, other: Any) -> bool:
    # equal keys are one key of a dict; a tensor as key compares elements
    return one is other or (
        type(one) is type(other) and isinstance(one, (str, int)) and one == other
    )


def _is_same_text(now: Any, then: Any) -> bool:
    # NumPy shortens long arrays
    with np.printoptions(threshold=100_000):
        return repr(now) == repr(then)


def _refill(value: Any, then: Any) -> None:
    """Have a container hold what it held, whatever its class makes of its methods."""
    if isinstance(value, collections.OrderedDict):
        # its order is kept beside the dict's own
        collections.OrderedDict.clear(value)
        for key, item in then.items():
            collections.OrderedDict.__setitem__(value, key, item)
    elif isinstance(value, dict):
        _refill_dict(value, then)
    elif isinstance(value, set):
        set.clear(value)
        set.update(value, then)
    elif isinstance(value, list):
        list.__setitem__(value, slice(None), then)
    else:
        collections.deque.clear(value)
        collections.deque.extend(value, then)


def _refill_dict(now: dict[Any, Any], then: dict[Any, Any]) -> None:
    # without a moment in which it is empty: threads may look into it
    for key in [key for key in now if key not in then]:
        dict.__delitem__(now, key)
    for key, value in then.items():
        if now.get(key, MISSING) is not value:
            dict.__setitem__(now, key, value)
    if not all(map(operator.is_, now, then)) and not all(map(_is, now, then)):
        dict.clear(now)
        dict.update(now, then)
