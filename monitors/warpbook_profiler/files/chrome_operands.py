"""How kernels were launched and operators called, parsed once for each text."""

from __future__ import annotations

import contextlib
import math
import re
from collections.abc import Callable, Iterable, Iterator
from typing import Annotated, TypeVar

import msgspec
import numpy as np
from msgspec import Meta

from warpbook_profiler.events.columns import (
    MAX_NAME_LENGTH,
    NONE,
    Int32s,
    KernelShape,
    Message,
    Operands,
    lists_of,
)
from warpbook_profiler.files.chrome_records import Args

#: dtypes by the names that torch's profiler writes; others write them otherwise
_DTYPES = {
    name: dtype
    for dtype, names in {
        "c10::BFloat16": "bfloat16 bf16",
        "c10::Half": "half float16 fp16",
        "float": "float float32 fp32",
        "double": "double float64 fp64",
        "c10::Float8_e4m3fn": "float8_e4m3fn",
        "c10::Float8_e5m2": "float8_e5m2",
        "c10::Float8_e4m3fnuz": "float8_e4m3fnuz",
        "c10::Float8_e5m2fnuz": "float8_e5m2fnuz",
        "c10::Float8_e8m0fnu": "float8_e8m0fnu",
        "c10::Float4_e2m1fn_x2": "float4_e2m1fn_x2",
        "signed char": "char int8",
        "unsigned char": "byte uint8",
        "short": "short int16",
        "int": "int int32",
        "long": "long int64",
        "bool": "bool",
    }.items()
    for name in names.split()
}
_SPACE = re.compile(r"(c10::|at::|torch\.)+")

#: of a tensor
_MOST_ELEMENTS = 2**63
_Count = Annotated[int, Meta(ge=0, le=2**40)]
_Triple = tuple[_Count, _Count, _Count]
_T = TypeVar("_T")


def parsed(
    texts: Iterable[bytes], position: Int32s, parse: Callable[[list[bytes]], _T]
) -> tuple[tuple[_T, ...], Int32s]:
    """Parse each text that is in use; what can't be parsed is not known."""
    used = np.bincount(position[position != NONE])
    place = np.full(len(used) + 1, NONE, np.int32)  # NONE is the last
    parsed: list[_T] = []
    wanted = [
        (text, at) for at, text in enumerate(texts) if at < len(used) and used[at]
    ]
    # sorted, so that the order of the file's events decides nothing
    for text, at in sorted(wanted):
        with contextlib.suppress(msgspec.MsgspecError, UnicodeDecodeError):
            parsed.append(parse(text.split(b"\0")))
            place[at] = len(parsed) - 1
    return tuple(parsed), place.take(position)


def shape(text: list[bytes]) -> KernelShape:
    grid, block, registers, shared = text
    return KernelShape(
        msgspec.json.decode(grid, type=_Triple),
        msgspec.json.decode(block, type=_Triple),
        msgspec.json.decode(registers or b"0", type=_Count),
        msgspec.json.decode(shared or b"0", type=_Count),
    )


def operands(text: list[bytes]) -> Operands:
    dims, dtypes, scalars, *of_collective = text
    # a list of tensors (as of aten::cat) nests one level deeper
    sizes = msgspec.json.decode(
        dims or b"[]", type=tuple[tuple[_Count | tuple[_Count, ...], ...], ...]
    )
    flat = (part for one in sizes for part in (one, *one) if isinstance(part, tuple))
    if any(math.prod(_numbers(part)) > _MOST_ELEMENTS for part in flat):
        raise msgspec.ValidationError("no tensor has so many elements")
    return Operands(
        tuple(
            tuple(size for size in operand if isinstance(size, int))
            if all(isinstance(size, int) for size in operand)
            else ()
            for operand in sizes
        ),
        tuple(
            map(_named_as_torch, msgspec.json.decode(dtypes or b"[]", type=list[str]))
        ),
        msgspec.json.decode(scalars or b"[]", type=tuple[str, ...]),
        lists_of(sizes),
        _message(*of_collective) if of_collective else None,
    )


def _numbers(operand: tuple[int | tuple[int, ...], ...]) -> Iterator[int]:
    return (size for size in operand if isinstance(size, int))


def message(args: Args) -> tuple[bytes, bytes, bytes]:
    """Give the texts of what a collective moves."""
    counts = f"[{args.sent},{args.received},{args.ranks}]".encode()
    return bytes(args.collective), bytes(args.dtype), counts


def _message(name: bytes, dtype: bytes, counts: bytes) -> Message:
    sent, received, ranks = msgspec.json.decode(counts, type=tuple[int, int, int])
    return Message(
        msgspec.json.decode(name, type=str)[:MAX_NAME_LENGTH],
        _named_as_torch(msgspec.json.decode(dtype or b'""', type=str)),
        max(sent, received),
        ranks,
    )


def _named_as_torch(dtype: str) -> str:
    return _DTYPES.get(_SPACE.sub("", dtype, count=1).lower(), dtype)
