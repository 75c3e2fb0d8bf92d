"""Which objects a cell can change: all that its names lead to.

A walk over attributes, items, closures and the globals of the person's own functions.
Each object that can change is kept as it is; one whose state can't be put back is
listed with the reason.
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
import logging
import os
import pathlib
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

from warpbook.kernel.trying.guard import check_stores, is_own_code
from warpbook.kernel.trying.kept import (
    CONTAINERS,
    RANDOM,
    Kept,
    attributes,
    keep_cell,
    keep_container,
    keep_instance,
    keep_random_state,
)
from warpbook.kernel.trying.refusals import Refused
from warpbook.kernel.trying.saved_tensors import Array

#: objects that can change; comparing and putting back more would take as long as a cell
MOST_OBJECTS = 100_000
#: items of all containers together
MOST_ITEMS = 2_000_000
_UNCHANGING = (
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
)
#: what objects of these types lead to
_PARTS: tuple[tuple[type, tuple[str, ...]], ...] = (
    (types.MethodType, ("__self__", "__func__")),
    (functools.partial, ("func", "args", "keywords")),
    (staticmethod, ("__func__",)),
    (classmethod, ("__func__",)),
    (types.FunctionType, ("__defaults__", "__kwdefaults__", "__dict__")),
    (collections.defaultdict, ("default_factory",)),
)
#: without state of their own; some wrap a function
_STATELESS = ("builtins", "_weakref", "weakref", "functools", "_thread", "torch")


@dataclass
class Reached:
    """What is there, each with the way that leads to it."""

    tensors: list[tuple[str, torch.Tensor]] = field(default_factory=list)
    arrays: list[tuple[str, Array]] = field(default_factory=list)
    #: containers, attributes, closures' variables and generators of random numbers
    objects: list[Kept] = field(default_factory=list)
    #: what can't be put back, and why
    problems: list[tuple[str, str]] = field(default_factory=list)
    modules: list[torch.nn.Module] = field(default_factory=list)
    optimizers: list[torch.optim.Optimizer] = field(default_factory=list)


def reach(names: Iterable[str], namespace: Mapping[str, Any]) -> Reached:
    """Walk from the names that a cell mentions.

    Raises:
        Refused: there is too much to keep, or a function sets what is not kept.
    """
    walk = _Walk(namespace)
    for name in sorted(names):
        walk.add(name, namespace.get(name))
    walk.go()
    return walk.reached


class _Walk:
    def __init__(self, namespace: Mapping[str, Any]) -> None:
        self.reached = Reached()
        #: first come, first served, so that each has its shortest path
        self._waiting: collections.deque[tuple[str, Any]] = collections.deque()
        #: by id; held, so that no id is given anew
        self._seen: dict[int, Any] = {id(namespace): namespace}
        self._items = 0

    def add(self, path: str, value: Any) -> None:
        # the guard stops who calls the shell
        if not isinstance(value, _UNCHANGING) and path != "get_ipython":
            self._waiting.append((path, value))

    def go(self) -> None:
        while self._waiting:
            path, value = self._waiting.popleft()
            if id(value) in self._seen:
                continue
            self._seen[id(value)] = value
            self._take(path, value)
            if len(self._seen) > MOST_OBJECTS or self._items > MOST_ITEMS:
                raise Refused(
                    f"the cell reaches more Python objects than can be kept beside "
                    f"each run ({path})."
                )

    def _take(self, path: str, value: Any) -> None:
        for kind, names in _PARTS:
            if isinstance(value, kind):
                for name in names:
                    self.add(path, getattr(value, name))
        if isinstance(value, torch.Tensor):
            self._take_tensor(path, value)
        elif isinstance(value, np.ndarray):
            self._take_array(path, value)
        elif isinstance(value, CONTAINERS):
            self.reached.objects.append(keep_container(path, value))
            self._take_items(path, value)
            self._take_attributes(path, attributes(value), value)
        elif isinstance(value, (tuple, frozenset, types.MappingProxyType)):
            self._take_items(path, value)
        elif isinstance(value, types.FunctionType):
            self._take_function(path, value)
        elif isinstance(value, type):
            if _is_own_class(value):
                self._take_attributes(path, attributes(value), value)
                self._take_items(path, value.__bases__)
        elif isinstance(value, types.CellType):
            self.reached.objects.append(kept := keep_cell(path, value))
            for contents in kept.then:
                self.add(path, contents)
        elif isinstance(value, weakref.ref):
            self.add(path, value())
        elif isinstance(value, RANDOM):
            self.reached.objects.append(keep_random_state(path, value))
        elif isinstance(value, io.IOBase):
            if not value.closed:
                self._problem(path, "is an open file, whose position can't be put back")
        elif isinstance(value, torch.cuda.CUDAGraph):
            self._problem(path, "is a CUDA graph, which changes memory out of sight")
        elif isinstance(value, collections.abc.Iterator):
            self._problem(path, f"is {_kind(value)}, which a run would use up")
        elif not isinstance(value, tuple(kind for kind, _ in _PARTS)):
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
            self.add(f"{path}.grad", tensor.grad)
        self._take_attributes(path, vars(tensor), tensor)

    def _take_array(self, path: str, array: Array) -> None:
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
            # the walk ends here
            return
        if isinstance(value, (dict, types.MappingProxyType)):
            for at, (key, item) in enumerate(value.items()):
                shown = f"{key!r:.30}" if isinstance(key, (str, int)) else at
                self.add(f"{path}[key {at}]", key)
                self.add(f"{path}[{shown}]", item)
        else:
            for at, item in enumerate(value):
                self.add(f"{path}[{at}]", item)

    def _take_function(self, path: str, function: types.FunctionType) -> None:
        for cell in function.__closure__ or ():
            self.add(path, cell)
        # of a library's functions only what they were given counts
        if is_own_code(function.__code__.co_filename):
            known = function.__globals__
            check_stores(function.__code__, known)
            for name in _names(function.__code__):
                self.add(name, known.get(name))

    def _take_other(self, path: str, value: Any) -> None:
        kind = type(value)
        if isinstance(value, torch.nn.Module):
            self.reached.modules.append(value)
            # by the names that torch gives them; some modules hold them in C++
            named = (*value.named_parameters(), *value.named_buffers())
            for name, tensor in reversed(named):
                self._waiting.appendleft((f"{path}.{name}", tensor))
        elif isinstance(value, torch.optim.Optimizer):
            self.reached.optimizers.append(value)
        own = attributes(value)
        if own is not None:
            self._take_attributes(path, own, value)
            self.add(path, kind)
        elif kind.__module__.partition(".")[0] in _STATELESS:
            self.add(path, getattr(value, "__wrapped__", None))
        else:
            self._problem(path, f"is {_kind(value)}, which can't be put back")

    def _take_attributes(
        self, path: str, own: dict[str, Any] | None, value: Any
    ) -> None:
        if own:
            self.reached.objects.append(keep_instance(path, value))
            self._items += len(own)
            for name, attribute in own.items():
                self.add(f"{path}.{name}", attribute)

    def _problem(self, path: str, reason: str) -> None:
        self.reached.problems.append((path, reason))


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
