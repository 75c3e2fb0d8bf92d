"""Which objects a cell can change: all that its names lead to.

A walk over attributes, items, closures and the globals of the person's own functions.
Each object that can change is listed, so that `snapshot.py` can put it back; one whose
state can't be put back is listed with the reason.
"""

from __future__ import annotations

import collections
import collections.abc
import datetime
import decimal
import enum
import fractions
import functools
import io
import itertools
import logging
import operator
import os
import pathlib
import random
import re
import sys
import types
import uuid
import weakref
from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass, field
from typing import Any

import numpy as np
import torch

from warpbook.kernel.trying.refusals import Refused
from warpbook.kernel.trying.side_effects import is_own_code

#: objects that can change; comparing and putting back more would take as long as a cell
MOST_OBJECTS = 100_000
#: items of all containers together
MOST_ITEMS = 2_000_000
#: of a class; what Python itself keeps there is left alone
NOT_ATTRIBUTES = ("__dict__", "__weakref__", "__doc__", "__module__", "_abc_impl")
#: objects of these types stay as they are
UNCHANGING = (
    *(bool, int, float, complex, str, bytes, type(None), type(Ellipsis)),
    *(type(NotImplemented), range, slice, enum.Enum, np.generic, np.dtype),
    *(datetime.date, datetime.time, datetime.timedelta, datetime.tzinfo),
    *(decimal.Decimal, fractions.Fraction, uuid.UUID, pathlib.PurePath, re.Pattern),
    *(re.Match, types.CodeType, types.ModuleType, types.BuiltinFunctionType),
    *(types.GenericAlias, types.UnionType, types.GetSetDescriptorType),
    *(types.MemberDescriptorType, types.MethodDescriptorType, types.TracebackType),
    *(types.WrapperDescriptorType, types.MethodWrapperType, types.FrameType),
    *(types.ClassMethodDescriptorType, property, logging.Logger, logging.Handler),
    *(torch.dtype, torch.device, torch.Size, torch.layout, torch.memory_format),
    *(torch.finfo, torch.iinfo, torch.Stream, torch.Event),
    *(operator.itemgetter, operator.attrgetter, operator.methodcaller),
    # a field of a named tuple's class
    type(vars(collections.namedtuple("_Named", "field"))["field"]),
)
_CONTAINERS = (dict, list, set, collections.deque, bytearray)
_ITERATORS = (
    *(types.GeneratorType, types.CoroutineType, types.AsyncGeneratorType, map, filter),
    *(zip, enumerate, reversed, itertools.chain, itertools.cycle, itertools.islice),
)
_PYTHON_CLASS = 1 << 9


@dataclass
class Reached:
    """What was found, each with the way that leads to it."""

    tensors: list[tuple[str, torch.Tensor]] = field(default_factory=list)
    arrays: list[tuple[str, np.ndarray[Any, Any]]] = field(default_factory=list)
    #: dict, list, set, deque, bytearray and what is derived of them
    containers: list[tuple[str, Any]] = field(default_factory=list)
    #: objects with attributes of their own
    instances: list[tuple[str, Any]] = field(default_factory=list)
    #: cells of closures
    cells: list[tuple[str, types.CellType]] = field(default_factory=list)
    #: generators of random numbers: torch's, NumPy's, Python's
    generators: list[tuple[str, Any]] = field(default_factory=list)
    #: what can't be put back, and why
    problems: list[tuple[str, str]] = field(default_factory=list)
    modules: list[torch.nn.Module] = field(default_factory=list)
    optimizers: list[torch.optim.Optimizer] = field(default_factory=list)


def reach(names: Iterable[str], namespace: Mapping[str, Any]) -> Reached:
    """Walk from the names that a cell mentions.

    Raises:
        Refused: there is too much to keep.
    """
    walk = _Walk(namespace)
    for name in sorted(names):
        if name in namespace:
            walk.waiting.append((name, namespace[name]))
    walk.go()
    return walk.reached


class _Walk:
    def __init__(self, namespace: Mapping[str, Any]) -> None:
        self.reached = Reached()
        #: first come, first served, so that each has its shortest path
        self.waiting: collections.deque[tuple[str, Any]] = collections.deque()
        self._namespace = namespace
        #: by id; held, so that no id is given anew
        self._seen: dict[int, Any] = {id(namespace): namespace}
        self._items = 0

    def go(self) -> None:
        while self.waiting:
            path, value = self.waiting.popleft()
            if id(value) in self._seen or isinstance(value, UNCHANGING):
                continue
            self._seen[id(value)] = value
            if len(self._seen) > MOST_OBJECTS or self._items > MOST_ITEMS:
                raise Refused(
                    f"the cell reaches more Python objects than can be kept beside "
                    f"each run ({path})."
                )
            self._take(path, value)

    def _add(self, path: str, value: Any) -> None:
        if not isinstance(value, UNCHANGING):
            self.waiting.append((path, value))

    def _take(self, path: str, value: Any) -> None:
        reached = self.reached
        if isinstance(value, torch.Tensor):
            self._take_tensor(path, value)
        elif isinstance(value, np.ndarray):
            self._take_array(path, value)
        elif isinstance(value, _CONTAINERS):
            reached.containers.append((path, value))
            self._take_items(path, value)
            self._take_attributes(path, value)
        elif isinstance(value, (tuple, frozenset)):
            self._take_items(path, value)
        elif isinstance(value, types.FunctionType):
            self._take_function(path, value)
        elif isinstance(value, types.MethodType):
            self._add(path, value.__self__)
            self._add(path, value.__func__)
        elif isinstance(value, functools.partial):
            for part in (value.func, value.args, value.keywords):
                self._add(path, part)
        elif isinstance(value, (staticmethod, classmethod)):
            self._add(path, value.__func__)
        elif isinstance(value, type):
            self._take_class(path, value)
        elif isinstance(value, types.CellType):
            self._take_cell(path, value)
        elif isinstance(value, weakref.ref):
            self._add(path, value())
        elif isinstance(value, types.MappingProxyType):
            self._take_items(path, dict(value))
        elif isinstance(value, (torch.Generator, np.random.Generator, random.Random)):
            reached.generators.append((path, value))
        elif isinstance(value, np.random.RandomState):
            reached.generators.append((path, value))
        elif isinstance(value, io.IOBase):
            if not value.closed:
                self._problem(path, "is an open file, whose position can't be put back")
        elif isinstance(value, torch.cuda.CUDAGraph):
            self._problem(path, "is a CUDA graph, which changes memory out of sight")
        elif isinstance(value, (*_ITERATORS, collections.abc.Iterator)):
            self._problem(path, f"is {_kind(value)}, which a run would use up")
        else:
            self._take_other(path, value)

    def _take_tensor(self, path: str, tensor: torch.Tensor) -> None:
        if tensor.layout != torch.strided or tensor.is_meta or tensor.is_quantized:
            self._problem(path, f"is a {tensor.layout} tensor, which is not copied")
            return
        if type(tensor).__torch_dispatch__ is not torch.Tensor.__torch_dispatch__:
            self._problem(path, f"is {_kind(tensor)}, which is not copied")
            return
        self.reached.tensors.append((path, tensor))
        if tensor.is_leaf or tensor.retains_grad:
            self._add(f"{path}.grad", tensor.grad)
        if vars(tensor):
            self._take_attributes(path, tensor)

    def _take_array(self, path: str, array: np.ndarray[Any, Any]) -> None:
        if isinstance(array, np.memmap) and array.flags.writeable:
            self._problem(path, "is mapped to a file")
        elif array.dtype.hasobject:
            self._problem(path, "is an array of Python objects")
        else:
            self.reached.arrays.append((path, array))

    def _take_items(self, path: str, value: Any) -> None:
        if isinstance(value, bytearray):
            return
        self._items += len(value)
        if self._items > MOST_ITEMS:
            # the walk ends with the next object
            self.waiting.append((path, object()))
            return
        if isinstance(value, dict):
            for at, (key, item) in enumerate(value.items()):
                shown = f"{key!r:.30}" if isinstance(key, (str, int)) else str(at)
                self._add(f"{path}[key {at}]", key)
                self._add(f"{path}[{shown}]", item)
            if isinstance(value, collections.defaultdict):
                self._add(path, value.default_factory)
            return
        for at, item in enumerate(value):
            self._add(f"{path}[{at}]", item)

    def _take_function(self, path: str, function: types.FunctionType) -> None:
        for cell in function.__closure__ or ():
            self._add(path, cell)
        self._add(path, function.__defaults__)
        self._add(path, function.__kwdefaults__)
        if vars(function):
            self._add(path, vars(function))
        code = function.__code__
        # of a library's functions only what they were given counts
        if is_own_code(code.co_filename):
            for name in _names(code):
                if name in function.__globals__:
                    self._add(name, function.__globals__[name])

    def _take_cell(self, path: str, cell: types.CellType) -> None:
        self.reached.cells.append((path, cell))
        # an empty one has no contents
        try:
            self._add(path, cell.cell_contents)
        except ValueError:
            return

    def _take_class(self, path: str, kind: type) -> None:
        if not _is_own_class(kind):
            return
        self.reached.instances.append((path, kind))
        for name, value in vars(kind).items():
            if name not in NOT_ATTRIBUTES:
                self._add(f"{path}.{name}", value)
        for base in kind.__bases__:
            self._add(path, base)

    def _take_other(self, path: str, value: Any) -> None:
        kind = type(value)
        attributes = attributes_of(value)
        if isinstance(value, torch.nn.Module):
            self.reached.modules.append(value)
            # by the names that torch gives them; some modules hold them in C++
            named = (*value.named_parameters(), *value.named_buffers())
            for name, tensor in reversed(named):
                self.waiting.appendleft((f"{path}.{name}", tensor))
        elif isinstance(value, torch.optim.Optimizer):
            self.reached.optimizers.append(value)
        if attributes is not None:
            self._take_attributes(path, value)
            self._add(path, kind)
        elif kind is object or kind.__module__.startswith(("torch", "_thread")):
            return
        elif kind.__module__ in ("builtins", "_weakref", "weakref", "functools"):
            self._add(path, getattr(value, "__wrapped__", None))
        else:
            self._problem(path, f"is {_kind(value)}, which can't be put back")

    def _take_attributes(self, path: str, value: Any) -> None:
        attributes = attributes_of(value)
        if attributes:
            self.reached.instances.append((path, value))
            self._items += len(attributes)
            for name, attribute in attributes.items():
                self._add(f"{path}.{name}", attribute)

    def _problem(self, path: str, reason: str) -> None:
        self.reached.problems.append((path, reason))


def attributes_of(value: Any) -> dict[str, Any] | None:
    """Give an object's own attributes; None where its state is out of sight."""
    kind = type(value)
    own = getattr(value, "__dict__", None) if _has_dict(kind) else None
    slots = dict(_slots(value))
    if isinstance(own, dict):
        return {**own, **slots}
    return None if _hides_state(kind) else slots


def _hides_state(kind: type) -> bool:
    """Tell whether it has fields of C, as `cupy.ndarray` has of its base."""
    return any(
        base.__basicsize__ > object.__basicsize__
        and not (base.__flags__ & _PYTHON_CLASS and "__slots__" in vars(base))
        for base in kind.__mro__
    )


def _has_dict(kind: type) -> bool:
    return bool(getattr(kind, "__dictoffset__", 0))


def slot_names(kind: type) -> Iterator[str]:
    """Give the names of a class's slots, its bases' too."""
    for owner in kind.__mro__:
        names = vars(owner).get("__slots__", ())
        for name in (names,) if isinstance(names, str) else names:
            if name not in ("__dict__", "__weakref__"):
                is_private = name.startswith("__") and not name.endswith("__")
                yield f"_{owner.__name__.lstrip('_')}{name}" if is_private else name


def _slots(value: Any) -> Iterator[tuple[str, Any]]:
    for name in slot_names(type(value)):
        try:
            yield name, object.__getattribute__(value, name)
        except AttributeError:
            # not set yet
            continue


def _is_own_class(kind: type) -> bool:
    if kind.__module__ == "__main__":
        return True
    module = sys.modules.get(kind.__module__)
    path = getattr(module, "__file__", None)
    return isinstance(path, str) and is_own_code(os.path.abspath(path))


def _names(code: types.CodeType) -> Iterator[str]:
    yield from code.co_names
    for constant in code.co_consts:
        if isinstance(constant, types.CodeType):
            yield from _names(constant)


def _kind(value: object) -> str:
    return f"a {type(value).__module__}.{type(value).__qualname__}"
