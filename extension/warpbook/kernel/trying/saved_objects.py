"""Python objects as they were: items, attributes, closures and generators' states."""

from __future__ import annotations

import collections
import random
import types
from collections.abc import Container, Iterator
from dataclasses import dataclass
from typing import Any

import numpy as np
import torch

from warpbook.kernel.trying.reach import NOT_ATTRIBUTES, Reached, slot_names

_MISSING = object()


class SavedNamespace:
    """The names of a namespace and what each was bound to.

    New names that torch.compile keeps there stay: the code that it has compiled reads
    them as globals, and it runs that code again for whoever compiles the same.
    """

    def __init__(self, namespace: dict[str, Any]) -> None:
        """Note them; nothing is copied."""
        self._namespace = namespace
        self._then = dict(namespace)

    def restore(self) -> None:
        """Bind each name as it was, and drop those that are new."""
        _restore_dict(self._namespace, {**self._then, **self._of_compilers()})

    def changed(self, also: Container[str] = ()) -> dict[str, Any]:
        """Give the names that are bound to something else now, and others that are."""
        kept = self._of_compilers()
        return {
            name: value
            for name, value in self._namespace.items()
            if self._then.get(name, _MISSING) is not value or name in also
            if name not in kept
        }

    def differences(self) -> list[str]:
        """Name those that are not as they were; none after `restore`."""
        gone = [name for name in self._then if name not in self._namespace]
        return [*self.changed(), *gone]

    def _of_compilers(self) -> dict[str, Any]:
        return {
            name: value
            for name, value in self._namespace.items()
            if name not in self._then and _is_of_compiler(name)
        }


def _is_of_compiler(name: object) -> bool:
    """Tell whether torch.compile has made up a name.

    It begins them with two underscores (`__compiled_fn_1`, `__resume_at_4_2`,
    `__import_torch`), or ends them with its number of the code (`_7f0a12_c1/0`).
    """
    if not isinstance(name, str):
        return False
    return (name.startswith("__") and not name.endswith("__")) or "/" in name


class SavedObjects:
    """All Python objects that a cell can change."""

    def __init__(self, reached: Reached) -> None:
        """Note what each holds; the things held are not copied here."""
        self._containers = [_SavedContainer(*saved) for saved in reached.containers]
        self._instances = [_SavedInstance(*saved) for saved in reached.instances]
        self._cells = [(path, cell, _contents(cell)) for path, cell in reached.cells]
        self._generators = [
            (path, generator, state_of(generator))
            for path, generator in reached.generators
        ]

    def restore(self) -> None:
        for container in self._containers:
            container.restore()
        for instance in self._instances:
            instance.restore()
        for _, cell, then in self._cells:
            if _contents(cell) is not then:
                if then is _MISSING:
                    del cell.cell_contents
                else:
                    cell.cell_contents = then
        for _, generator, state in self._generators:
            _set_state(generator, state)

    def changed(self) -> list[tuple[str, Any]]:
        """Give lists and dicts with names of their own that hold something else."""
        return [
            (saved.path, saved.value)
            for saved in self._containers
            if saved.path.isidentifier()
            and isinstance(saved.value, (list, dict))
            and not saved.is_same()
        ]

    def held(self) -> list[tuple[str, Any]]:
        """Give all that holds something else, with what it holds."""
        return [
            *((one.path, one.value) for one in self._containers if not one.is_same()),
            *((one.path, one.now()) for one in self._instances if not one.is_same()),
            *(
                (path, _contents(cell))
                for path, cell, then in self._cells
                if _contents(cell) is not then
            ),
            *(
                (path, generator)
                for path, generator, state in self._generators
                if not _is_same_state(state_of(generator), state)
            ),
        ]

    def differences(self) -> list[str]:
        """Name those that are not as they were; none after `restore`."""
        return [path for path, _ in self.held()]


class _SavedContainer:
    def __init__(self, path: str, value: Any) -> None:
        self.path = path
        self.value = value
        self._then: Any = _items(value)

    def is_same(self) -> bool:
        value, then = self.value, self._then
        if isinstance(value, dict):
            return _is_same_dict(value, then)
        if isinstance(value, bytearray):
            return bool(value == then)
        if len(value) != len(then):
            return False
        if isinstance(value, set):
            return all(map(value.__contains__, then))
        return all(now is was for now, was in zip(value, then, strict=True))

    def restore(self) -> None:
        if self.is_same():
            return
        value, then = self.value, self._then
        if isinstance(value, collections.OrderedDict):
            # its order is kept beside the dict's own
            collections.OrderedDict.clear(value)
            for key, item in then.items():
                collections.OrderedDict.__setitem__(value, key, item)
        elif isinstance(value, dict):
            _restore_dict(value, then)
        elif isinstance(value, set):
            set.clear(value)
            set.update(value, then)
        elif isinstance(value, collections.deque):
            collections.deque.clear(value)
            collections.deque.extend(value, then)
        elif isinstance(value, bytearray):
            value[:] = then
        else:
            list.__setitem__(value, slice(None), then)


def _items(value: Any) -> Any:
    if isinstance(value, dict):
        return dict(value)
    return bytes(value) if isinstance(value, bytearray) else list(value)


class _SavedInstance:
    def __init__(self, path: str, value: Any) -> None:
        self.path = path
        self._value = value
        self._then = self.now()

    def is_same(self) -> bool:
        return _is_same_dict(self.now(), self._then)

    def restore(self) -> None:
        if self.is_same():
            return
        value = self._value
        if isinstance(value, type):
            self._restore_class(value)
            return
        own = getattr(value, "__dict__", None)
        slots = set(slot_names(type(value)))
        if isinstance(own, dict):
            wanted = {k: v for k, v in self._then.items() if k not in slots}
            _restore_dict(own, wanted)
        now = self.now()
        for name in slots:
            then = self._then.get(name, _MISSING)
            if now.get(name, _MISSING) is not then:
                if then is _MISSING:
                    object.__delattr__(value, name)
                else:
                    object.__setattr__(value, name, then)

    def now(self) -> dict[str, Any]:
        value = self._value
        if isinstance(value, type):
            attributes = vars(value).items()
            return {k: v for k, v in attributes if k not in NOT_ATTRIBUTES}
        return {**getattr(value, "__dict__", {}), **dict(_slots(value))}

    def _restore_class(self, kind: type) -> None:
        now = self.now()
        for name in now.keys() - self._then.keys():
            delattr(kind, name)
        for name, then in self._then.items():
            if now.get(name, _MISSING) is not then:
                setattr(kind, name, then)


def _slots(value: Any) -> Iterator[tuple[str, Any]]:
    for name in slot_names(type(value)):
        held = getattr(value, name, _MISSING)
        if held is not _MISSING:
            yield name, held


def _is_same_dict(now: dict[Any, Any], then: dict[Any, Any]) -> bool:
    # the order of keys is part of it: parameters are gone through in theirs
    return (
        len(now) == len(then)
        and all(map(_is, now, then))
        and all(map(_is, now.values(), then.values()))
    )


def _is(one: Any, other: Any) -> bool:
    # equal keys are one key of a dict; a tensor as key compares elements
    return one is other or (isinstance(one, (str, int)) and one == other)


def _restore_dict(now: dict[Any, Any], then: dict[Any, Any]) -> None:
    # without a moment in which it is empty: threads may look into it
    for key in [key for key in now if key not in then]:
        dict.__delitem__(now, key)
    for key, value in then.items():
        if now.get(key, _MISSING) is not value:
            dict.__setitem__(now, key, value)
    if not all(map(_is, now, then)):
        dict.clear(now)
        dict.update(now, then)


def _contents(cell: types.CellType) -> Any:
    try:
        return cell.cell_contents
    except ValueError:
        return _MISSING


@dataclass(frozen=True)
class _Bits:
    """The state of one of NumPy's generators."""

    state: Any


def state_of(generator: Any) -> Any:
    """Return the state of a generator of random numbers, to be compared."""
    if isinstance(generator, torch.Generator):
        return generator.get_state()
    if isinstance(generator, np.random.Generator):
        return _Bits(generator.bit_generator.state)
    if isinstance(generator, random.Random):
        return generator.getstate()
    return _Bits(generator.get_state(legacy=False))


def _set_state(generator: Any, state: Any) -> None:
    if isinstance(generator, torch.Generator):
        generator.set_state(state)
    elif isinstance(generator, np.random.Generator):
        generator.bit_generator.state = state.state
    elif isinstance(generator, random.Random):
        generator.setstate(state)
    else:
        generator.set_state(state.state)


def _is_same_state(now: Any, then: Any) -> bool:
    if isinstance(now, torch.Tensor):
        return bool(torch.equal(now, then))
    if isinstance(now, _Bits):
        # repr shortens arrays
        with np.printoptions(threshold=100_000):
            return repr(now) == repr(then)
    return bool(now == then)
