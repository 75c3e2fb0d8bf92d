"""All that results hold, part by part, and what of it can't be compared."""

from __future__ import annotations

import collections
import enum
import functools
import io
import math
import random
import re
import struct
import types
import weakref
from collections.abc import Iterable, Iterator
from typing import Any, NamedTuple

import numpy as np
import torch

from warpbook.kernel.trying.reach import (
    NOT_ATTRIBUTES,
    UNCHANGING,
    attributes_of,
    slot_names,
)
from warpbook.kernel.trying.refusals import Refused
from warpbook.kernel.trying.saved_objects import state_of
from warpbook.kernel.trying.side_effects import is_own_code

#: a run that leaves more is not compared
_MOST = 20_000
_NUMBERS = (float, complex, np.number)
_RANDOM = (torch.Generator, np.random.Generator, random.Random, np.random.RandomState)
#: what its name says all of
_NAMED = (
    *(types.ModuleType, types.BuiltinFunctionType, types.MethodDescriptorType),
    *(types.WrapperDescriptorType, types.MethodWrapperType, types.MemberDescriptorType),
    *(types.GetSetDescriptorType, types.ClassMethodDescriptorType, property),
)
_POINTER_BYTES = struct.calcsize("P")
#: longer whole numbers have no decimal text
_MOST_BITS = 10_000

_Items = Iterable[tuple[str, Any]]


class Part(NamedTuple):
    """One value that a result leads to."""

    path: str
    #: in words, alike for values that are alike but for their numbers
    kind: str
    value: Any
    is_comparable: bool = True


def parts_of(results: Iterable[tuple[str, Any]]) -> Iterator[Part]:
    """Give all that results hold, each object once, whatever leads to it again.

    Args:
        results: each with the way that leads to it.

    Raises:
        Refused: that is too much to compare.
    """
    #: held, so that no id is given anew
    seen = dict[int, tuple[str, Any]]()
    paths = set[str]()
    waiting = collections.deque(results)
    while waiting:
        path, value = waiting.popleft()
        while path in paths:
            path += "'"
        paths.add(path)
        if len(paths) > _MOST:
            raise Refused("the cell leaves more results than can be compared.")
        if id(value) in seen:
            yield Part(path, f"the same as {seen[id(value)][0]}", None)
            continue
        if not isinstance(value, UNCHANGING):
            seen[id(value)] = path, value
        kind, items = _looked_at(value)
        yield Part(path, kind, value, items is not None)
        # all of one result before the next, whose ways to it then say so
        inner = [(f"{path}{step}", item) for step, item in items or ()]
        waiting.extendleft(reversed(inner))


def _looked_at(value: Any) -> tuple[str, _Items | None]:
    """Give a value's kind, and what it holds; None for that if it is out of sight."""
    name = type(value).__name__
    if isinstance(value, UNCHANGING):
        return _unchanging(name, value), ()
    if isinstance(value, torch.Tensor):
        return _tensor(name, value)
    if isinstance(value, np.ndarray):
        return _array(name, value)
    if isinstance(value, _RANDOM):
        state = state_of(value)
        if isinstance(state, torch.Tensor):
            return name, [(".state", state)]
        with np.printoptions(threshold=100_000):
            return f"{name} {state!r}", ()
    items = _held(value)
    if items is not None:
        own = attributes_of(value) or {}
        return _container(name, value), [*items, *_attributes(own)]
    code = _of_code(value)
    if code is not None:
        return f"{name} {getattr(value, '__qualname__', '')}".rstrip(), code
    if not isinstance(value, io.IOBase) and not _hides_state(type(value)):
        return name, _attributes(attributes_of(value) or {})
    return f"a {type(value).__module__}.{type(value).__qualname__}", None


def _unchanging(name: str, value: Any) -> str:
    match value:
        case enum.Enum():
            return f"{name} {value!r}"
        case int():
            text = hex(value) if value.bit_length() > _MOST_BITS else repr(value)
            return f"{name} {text}"
        case float() if type(value) is float:
            return f"{name} that float32 holds" if is_of_float32(value) else name
        case _ if isinstance(value, _NUMBERS):
            return name
        case re.Pattern():
            return f"{name} {value.pattern!r} {value.flags}"
        case re.Match():
            return f"{name} {value.re.pattern!r} {value.span()} {value.string!r}"
        case types.CodeType() | torch.Stream() | torch.Event():
            return name
        case _ if isinstance(value, _NAMED):
            return f"{name} {getattr(value, '__name__', '')}"
    return f"{name} {value!r}"


def is_of_float32(value: float) -> bool:
    """Tell whether a number loses nothing in float32, as what a tensor's item gives."""
    if not math.isfinite(value):
        return True
    with np.errstate(over="ignore"):
        return float(np.float32(value)) == value


def _tensor(name: str, value: torch.Tensor) -> tuple[str, _Items | None]:
    grad = " with a gradient" if value.requires_grad else ""
    shape = tuple(value.shape)
    kind = f"{name} {value.dtype} {shape} on {value.device}{grad}"
    has_own = type(value).__torch_dispatch__ is not torch.Tensor.__torch_dispatch__
    if has_own or value.is_meta or value.is_quantized or value.is_nested:
        return kind, None
    items = list(_attributes(vars(value)))
    if value.is_leaf or value.retains_grad:
        items += [(".grad", value.grad)] if value.grad is not None else []
    if value.layout == torch.strided:
        return f"{kind}{_strides(shape, value.stride())}", items
    kind = f"{kind} {value.layout}"
    if value.layout == torch.sparse_coo:
        of_layout = ("_indices", "_values", "is_coalesced")
    elif value.layout == torch.sparse_csr:
        of_layout = ("crow_indices", "col_indices", "values")
    else:
        return kind, None
    return kind, [*items, *((f".{one}", getattr(value, one)()) for one in of_layout)]


def _array(name: str, value: np.ndarray[Any, Any]) -> tuple[str, _Items | None]:
    kind = f"{name} {value.dtype} {value.shape}{_strides(value.shape, value.strides)}"
    items = list(_attributes(getattr(value, "__dict__", {})))
    if value.dtype.kind in "fiubc":
        return kind, items
    if value.dtype.kind == "O":
        return kind, [*items, *_numbered(value.ravel().tolist())]
    if value.dtype.hasobject:
        return kind, None
    return f"{kind} {value.tobytes()!r}", items


def _strides(shape: Iterable[int], strides: Iterable[int]) -> str:
    """Say the order of elements in memory, if there is a choice."""
    sizes = list(shape)
    if 0 in sizes:
        return ""
    steps = [step for size, step in zip(sizes, strides, strict=True) if size > 1]
    return f" strides {steps}"


def _held(value: Any) -> list[tuple[str, Any]] | None:
    """Give a container's items; None of what is none."""
    match value:
        case dict():
            items = [
                (f"[{key!r:.30}]" if _is_short(key) else f"[value {at}]", item)
                for at, (key, item) in enumerate(value.items())
            ]
            keys = ((f"[key {at}]", key) for at, key in enumerate(value))
            items += [one for one in keys if not isinstance(one[1], UNCHANGING)]
            if isinstance(value, collections.defaultdict):
                items.append((".default_factory", value.default_factory))
            return items
        case list() | tuple() | collections.deque():
            return list(_numbered(value))
        case set() | frozenset():
            # others have no order
            return [] if all(isinstance(one, UNCHANGING) for one in value) else None
        case bytearray():
            return []
    return None


def _is_short(key: object) -> bool:
    # only of these is the text known, and does no code of the person's make it
    return type(key) in (str, int, float, bool, type(None))


def _container(name: str, value: Any) -> str:
    match value:
        case dict():
            known = [repr(key) for key in value if isinstance(key, UNCHANGING)]
            return f"{name} of {len(value)} {known}"
        case set() | frozenset():
            return f"{name} of {sorted(map(repr, value))}"
        case bytearray():
            return f"{name} {bytes(value)!r}"
        case collections.deque():
            return f"{name} of {len(value)}, at most {value.maxlen}"
    return f"{name} of {len(value)}"


def _numbered(values: Iterable[Any]) -> Iterator[tuple[str, Any]]:
    return ((f"[{at}]", item) for at, item in enumerate(values))


def _hides_state(kind: type) -> bool:
    """Tell whether objects have more than attributes, as fields of C."""
    names = len(list(slot_names(kind)))
    names += (kind.__dictoffset__ > 0) + (kind.__weakrefoffset__ > 0)
    known_bytes = object.__basicsize__ + names * _POINTER_BYTES
    return kind.__basicsize__ > known_bytes or kind.__itemsize__ > 0


def _attributes(own: dict[str, Any]) -> list[tuple[str, Any]]:
    return [(f".{name}", item) for name, item in own.items()]


def _of_code(value: Any) -> _Items | None:
    """Give what code was given to keep: an edit may write the code otherwise."""
    match value:
        case types.FunctionType() if is_own_code(value.__code__.co_filename):
            cells = [(".closure", cell) for cell in value.__closure__ or ()]
            given = (value.__defaults__, value.__kwdefaults__)
            return [*cells, (".defaults", given), *_attributes(vars(value))]
        case types.FunctionType():
            return ()
        case types.MethodType():
            return [(".self", value.__self__), (".func", value.__func__)]
        case functools.partial():
            return _numbered((value.func, value.args, value.keywords))
        case staticmethod() | classmethod():
            return [(".func", value.__func__)]
        case type() if value.__module__ == "__main__":
            own = vars(value).items()
            return [
                (f".{name}", one) for name, one in own if name not in NOT_ATTRIBUTES
            ]
        case type():
            return ()
        case types.CellType():
            try:
                return [(".contents", value.cell_contents)]
            except ValueError:
                return ()
        case weakref.ref():
            return [(".target", value())]
        case types.MappingProxyType():
            return [(".mapping", dict(value))]
    return None
