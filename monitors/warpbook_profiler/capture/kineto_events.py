"""Reads torch's raw events into columns, with one loop in C for each property.

torch's `events()` and `key_averages()` are never called: they take 40-70 µs per event.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Sequence
from itertools import compress
from typing import Any

import numpy as np
import torch

from warpbook_profiler.events.columns import (
    KINETO_CATEGORIES,
    NONE,
    ON_GPU,
    Category,
    Columns,
    Int8s,
    Int32s,
    Int64s,
    KernelShape,
    Operands,
    groups,
    interned,
    lists_of,
    make_columns,
)
from warpbook_profiler.facts.flops import is_modelled

#: scalars tell whether they add to what is there, and which share, take statistics of
#: a batch, along which axis they work, what they write, or how far they count
_FLAGGED = frozenset(
    f"aten::{name}{in_place}"
    for name in "index_put _index_put_impl native_batch_norm cudnn_batch_norm "
    "miopen_batch_norm sum mean sort linalg_vector_norm pow scatter index_add "
    "scatter_add arange".split()
    for in_place in ("", "_")
) | {"aten::add_"}
#: torch's type of an argument whose sizes have an answer of their own
_LIST = "TensorList"


def read_operands(
    events: Sequence[Any], rows: Iterable[int], names: tuple[tuple[str, ...], Int32s]
) -> tuple[tuple[Operands, ...], Int32s]:
    """Read the operands of operators.

    Args:
        events: all of them.
        rows: the operators that matter; a microsecond or two for each.
        names: the distinct ones, and each event's position among them.

    Returns:
        the distinct operands, and for each event its position among them or NONE.
    """
    has_scalars = list(map(keeps_scalars, names[0]))
    places: dict[tuple[Any, ...], int] = {}
    position = np.full(len(events), NONE, np.int32)
    named = names[1].tolist()
    for row in rows:
        name = named[row]
        key = _key(events[row], has_scalars[name])
        position[row] = places.setdefault(key, len(places))
    return tuple(map(_operands, places)), position


def operands_of(event: Any, name: str) -> Operands:
    """Give what one operator was called with, as a trace file has it."""
    return _operands(_key(event, keeps_scalars(name)))


def keeps_scalars(name: str) -> bool:
    """Tell whether it is read which numbers an operator is called with."""
    return is_modelled(name) or name in _FLAGGED


def _key(event: Any, has_scalars: bool) -> tuple[Any, ...]:
    scalars = map(str, event.concrete_inputs()) if has_scalars else ()
    dtypes = tuple(event.dtypes())
    lists: tuple[Any, ...] = ()
    if _LIST in dtypes and hasattr(event, "structured_input_shapes"):
        lists = lists_of(event.structured_input_shapes())
    return tuple(map(tuple, event.shapes())), dtypes, tuple(scalars), lists


def _operands(key: tuple[Any, ...]) -> Operands:
    dims, dtypes, scalars, lists = key
    return Operands(
        dims,
        dtypes,
        tuple("" if scalar == "None" else scalar for scalar in scalars),
        lists,
    )


#: torch's names of what is asked of every event
_NUMBERS = (
    "start_ns",
    "duration_ns",
    "correlation_id",
    "linked_correlation_id",
    "device_index",
    "device_resource_id",
    "is_user_annotation",
)
#: what only an operator has
_SEQUENCE = "sequence_nr"
#: operators of a run without kernels whose operands are read, the longest
_MOST_ON_CPU = 20_000
#: events at a time
_BLOCK = 500
_BYTES = re.compile(r'"bytes": (\d+)')
_SHAPE = re.compile(
    r'"registers per thread": (\d+).*?"shared memory": (\d+)'
    r'.*?"grid": \[(\d+), ?(\d+), ?(\d+)\].*?"block": \[(\d+), ?(\d+), ?(\d+)\]',
    re.DOTALL,
)
#: what a launch's shape decides is between the two; before it are what differ
_SHAPE_BEGIN, _SHAPE_END = '"registers per thread"', '"est. achieved'
#: "INVALID" is a call that Kineto has no name for
_API_NAME = re.compile(r"(cuda|cu)[A-Z]\w*$|INVALID$")


def read_events(events: Sequence[Any], shapes: bool = False) -> Columns:
    """Take all that is of use from torch's events.

    Args:
        events: as torch gives them.
        shapes: it recorded what operators were called with.
    """
    numbers, names = _go_through(events)
    correlation = numbers["correlation_id"]
    linked = numbers["linked_correlation_id"]
    index = numbers["device_index"]
    track = numbers["device_resource_id"]
    # a user may name a part of the code as one of its kernels is named
    annotates = numbers["is_user_annotation"]
    category = _categories(events, names[1], index, track, np.sign(linked), annotates)
    if events and not hasattr(events[0], "is_user_annotation"):
        # torch 2.4: on the GPU they have the name of the code's part
        parts = np.unique(names[1][category == Category.OPERATOR])
        is_part = np.isin(names[1], parts) & (category == Category.KERNEL)
        category[is_part] = Category.GPU_ANNOTATION
    on_gpu = np.isin(category, (*ON_GPU, Category.GPU_ANNOTATION))
    # an operator has no link: it is what others are linked to
    own_link = np.where(category == Category.OPERATOR, correlation, NONE)
    size_bytes, launches = _metadata(events, category)
    rows = _modelled(numbers, category).tolist() if shapes else ()
    return make_columns(
        names=names,
        categories=category,
        start_ns=numbers["start_ns"],
        duration_ns=np.maximum(numbers["duration_ns"], 0),
        device=np.where(on_gpu, index, NONE),
        track=track,
        correlation=correlation,
        size_bytes=size_bytes,
        external=np.where(linked == 0, own_link, linked),
        shapes=launches,
        operands=read_operands(events, rows, names),
        annotates=(category == Category.OPERATOR) & (annotates != 0),
        sequence=np.where(
            category == Category.OPERATOR,
            np.maximum(numbers[_SEQUENCE], NONE),
            NONE,
        ),
    )


def _modelled(numbers: dict[str, Int64s], category: Int8s) -> Int64s:
    """Choose the operators whose operands are read, a microsecond or two for each."""
    is_operator = category == Category.OPERATOR
    if (category == Category.KERNEL).any():
        # no rule reads what operators are called with that put nothing on the GPU
        linked = numbers["linked_correlation_id"][np.isin(category, ON_GPU)]
        is_operator &= np.isin(numbers["correlation_id"], linked)
        return np.flatnonzero(is_operator)
    rows = np.flatnonzero(is_operator)
    longest = np.argsort(-numbers["duration_ns"][rows], kind="stable")
    return np.sort(rows[longest[:_MOST_ON_CPU]])


def _go_through(
    events: Sequence[Any],
) -> tuple[dict[str, Int64s], tuple[tuple[str, ...], Int32s]]:
    """Ask every event for its numbers (zeros where torch has none) and its name.

    Block by block: what an event is made of lies all over memory, and a block of them
    stays in the CPU's cache from the first question to the last.
    """
    count = len(events)
    numbers = {method: np.zeros(count, np.int64) for method in (*_NUMBERS, _SEQUENCE)}
    calls = {
        method: getattr(type(events[0]), method)
        for method in numbers
        if count and hasattr(events[0], method)
    }
    sequence_of = calls.pop(_SEQUENCE, None)
    places: dict[str, int] = {}
    name = np.zeros(count, np.int32)
    for begin in range(0, count, _BLOCK):
        block = events[begin : begin + _BLOCK]
        rows = slice(begin, begin + len(block))
        for method, call in calls.items():
            numbers[method][rows] = np.fromiter(map(call, block), np.int64)
        if sequence_of is not None:
            # an operator has no link; calls and GPU work have one
            unlinked = numbers["linked_correlation_id"][rows] == 0
            operators = block if unlinked.all() else compress(block, unlinked.tolist())
            numbers[_SEQUENCE][rows][unlinked] = np.fromiter(
                map(sequence_of, operators), np.int64
            )
        name[rows] = [places.setdefault(text, len(places)) for text in _names(block)]
    return numbers, (tuple(places), name)


def _names(events: Sequence[Any]) -> Iterable[str]:
    try:
        return [event.name() for event in events]
    except UnicodeDecodeError:
        return map(_name, events)


def _name(event: Any) -> str:
    try:
        return str(event.name())
    except UnicodeDecodeError:
        return "(a name that is not UTF-8)"


def _categories(events: Sequence[Any], *keys: Int32s | Int64s) -> Int8s:
    """Tell each event's category, from one of those that are alike in all keys."""
    first, group = groups(*(np.maximum(key, NONE) for key in keys))
    categories = [
        KINETO_CATEGORIES.get(kind_of(events[row]), Category.OTHER)
        for row in first.tolist()
    ]
    return np.array(categories, np.int8)[group]


def kind_of(event: Any) -> str:
    """Give Kineto's activity type, which torch tells by name since 2.13."""
    kind = event.activity_type() if hasattr(event, "activity_type") else None
    return kind if isinstance(kind, str) else inferred_kind(event)


def inferred_kind(event: Any) -> str:
    """Tell Kineto's activity type where torch does not."""
    if event.device_index() < 0:
        return "overhead"
    name = _name(event)
    if event.device_type() == torch.autograd.DeviceType.CPU:
        # an operator is linked to no operator
        is_api = event.linked_correlation_id() > 0 or _API_NAME.match(name)
        return "cuda_runtime" if is_api else "cpu_op"
    if getattr(event, "is_user_annotation", bool)():
        return "gpu_user_annotation"
    if name.startswith("Memcpy"):
        return "gpu_memcpy"
    return "gpu_memset" if name.startswith("Memset") else "kernel"


def _metadata(
    events: Sequence[Any], category: Int8s
) -> tuple[Int64s, tuple[tuple[KernelShape, ...], Int32s]]:
    """Read the sizes of copies and the launches of kernels, where torch has them."""
    size_bytes = np.full(len(events), NONE, np.int64)
    shape = np.full(len(events), NONE, np.int32)
    if not events or not hasattr(events[0], "metadata_json"):
        return size_bytes, ((), shape)
    copies = np.isin(category, (Category.COPY, Category.MEMSET))
    for row in np.flatnonzero(copies).tolist():
        size = _BYTES.search(events[row].metadata_json())
        if size:
            size_bytes[row] = int(size[1])
    rows = np.flatnonzero(category == Category.KERNEL)
    texts, position = interned(
        _shape_text(events[row].metadata_json()) for row in rows.tolist()
    )
    known = [match for match in map(_SHAPE.search, texts) if match]
    place = np.full(len(texts), NONE, np.int32)
    place[[bool(_SHAPE.search(text)) for text in texts]] = np.arange(len(known))
    shape[rows] = place[position]
    return size_bytes, (tuple(map(_shape, known)), shape)


def _shape_text(metadata: str) -> str:
    begin = metadata.find(_SHAPE_BEGIN)
    return "" if begin < 0 else metadata[begin:].partition(_SHAPE_END)[0]


def _shape(match: re.Match[str]) -> KernelShape:
    numbers = [int(group) for group in match.groups()]
    return KernelShape(
        (numbers[2], numbers[3], numbers[4]),
        (numbers[5], numbers[6], numbers[7]),
        numbers[0],
        numbers[1],
    )
