"""What a lab's own Python is given and gives back, as bytes: numbers and plain data.

Arrays of numbers travel as they lie in memory; nothing is pickled.
"""

from __future__ import annotations

import json
import random
from typing import Any

import msgspec
import numpy as np
from msgspec.msgpack import Ext

_ARRAY, _NUMBER, _GENERATOR, _RANDOM = 1, 2, 3, 4
#: kinds of NumPy's types: truth, whole numbers with a sign and without, floats, text
_KINDS = "biufU"

_decode_head = msgspec.msgpack.Decoder(tuple[str, tuple[int, ...]]).decode


class UnfitValue(TypeError):
    """It is no plain data."""


def encode(value: Any) -> bytes:
    """Put a value into bytes.

    Raises:
        UnfitValue: it is neither plain data, nor numbers of NumPy.
    """
    try:
        return msgspec.msgpack.encode(value, enc_hook=_extension)
    except (TypeError, OverflowError, RecursionError) as problem:
        raise UnfitValue(f"It is no plain data: {problem}") from None


def decode(content: bytes) -> Any:
    """Give a value back.

    Raises:
        UnfitValue: the bytes are of none.
    """
    try:
        return msgspec.msgpack.decode(content, ext_hook=_value)
    except (msgspec.DecodeError, RecursionError, ValueError, TypeError) as problem:
        raise UnfitValue(f"It is no plain data: {problem}") from None


def _extension(value: object) -> object:
    if isinstance(value, np.ndarray | np.generic):
        array = np.asarray(value)
        if array.dtype.kind not in _KINDS:
            raise TypeError(f"numbers of type {array.dtype}")
        head = msgspec.msgpack.encode((array.dtype.str, array.shape))
        code = _ARRAY if isinstance(value, np.ndarray) else _NUMBER
        parts = len(head).to_bytes(2, "little"), head, array.tobytes()
        return Ext(code, b"".join(parts))
    if isinstance(value, np.random.Generator):
        return Ext(_GENERATOR, json.dumps(value.bit_generator.state).encode())
    if isinstance(value, random.Random):
        return Ext(_RANDOM, json.dumps(value.getstate()).encode())
    if isinstance(value, msgspec.Struct):
        return msgspec.structs.asdict(value)
    raise TypeError(f"a value of type {type(value).__qualname__}")


def _value(code: int, content: memoryview) -> object:
    if code in (_ARRAY, _NUMBER):
        end = 2 + int.from_bytes(content[:2], "little")
        name, shape = _decode_head(content[2:end])
        dtype = np.dtype(name)
        if dtype.kind not in _KINDS:
            raise ValueError(f"numbers of type {dtype}")
        array = np.frombuffer(bytearray(content[end:]), dtype).reshape(shape)
        return array if code == _ARRAY else array[()]
    state = json.loads(bytes(content))
    if code == _GENERATOR:
        generator = np.random.default_rng()
        generator.bit_generator.state = state
        return generator
    if code == _RANDOM:
        dice = random.Random()
        version, numbers, gauss = state
        dice.setstate((version, tuple(numbers), gauss))
        return dice
    raise ValueError(f"data of an unknown kind, {code}")
