"""The trusted process's own kernels do what NumPy does, run by the interpreter."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

from warpbook_labs.compiler.nvrtc import compile_to_ptx
from warpbook_labs.engines.host.messages import Slot
from warpbook_labs.engines.host.regions import first_poisoned
from warpbook_labs.engines.interpreter.ptx.machine.machine import Machine
from warpbook_labs.gpu import kernels

KEY = 0xDEADBEEF
NOTHING = (1 << 64) - 1


@pytest.fixture(scope="module")
def ptx() -> str:
    return compile_to_ptx(kernels.SOURCE.read_text(encoding="utf-8")).ptx


def run(ptx: str, name: str, arrays: dict[str, Any], *given: Any) -> dict[str, Any]:
    """Launch one kernel; arguments are names of arrays, and numbers."""
    machine = Machine(ptx)
    buffers = {
        buffer_name: machine.put(buffer_name, array)
        for buffer_name, array in arrays.items()
    }
    arguments = [buffers.get(argument, argument) for argument in given]
    report = machine.run(name, (3, 1, 1), (256, 1, 1), arguments)
    assert not report.findings and not report.stopped
    return {
        buffer_name: machine.read(buffers[buffer_name], array.dtype)
        for buffer_name, array in arrays.items()
    }


def nothing_found() -> np.ndarray[Any, Any]:
    return np.array([NOTHING, 0], np.uint64)


def test_poison_is_no_number_of_any_type_and_known_from_any_byte_on(ptx: str) -> None:
    left = run(ptx, "poison", {"a": np.zeros(1024, np.uint32)}, "a", 1024, KEY)["a"]
    assert (left.view(np.uint8) == kernels.poison(4096, KEY)).all()
    for dtype in (np.float16, np.float32, np.float64):
        assert np.isnan(left.view(dtype)).all()
    assert (kernels.poison(99, KEY, 13) == left.view(np.uint8)[13:112]).all()
    # a NaN that hardware makes, or that an input has, is never taken for poison
    halves = kernels.poison(1 << 20, KEY).view(np.uint16)
    assert not np.isin(halves, (0x7FFF, 0x7E00)).any()
    assert not (left == kernels.poison(4096, KEY + 1).view(np.uint32)).all()


@pytest.mark.parametrize("stray", [None, 13, 2000, 4095])
def test_a_byte_that_was_written_in_a_red_zone_is_found(
    ptx: str, stray: int | None
) -> None:
    arena = kernels.poison(4096, KEY).copy()
    if stray is not None:
        arena[stray] ^= 1
    held = {"a": arena, "found": nothing_found()}
    left = run(ptx, "untouched", held, "a", 10, 4096, KEY, "found")["found"]
    assert list(left) == ([NOTHING, 0] if stray is None else [stray, 1])


@pytest.mark.parametrize("dtype", ["uint8", "float16", "int32", "float64"])
@pytest.mark.parametrize("length", [1, 700, 3000])
def test_inputs_are_put_together_as_on_the_processor(
    ptx: str, dtype: str, length: int
) -> None:
    pool = np.arange(length).astype(dtype)
    chunk, places = kernels.chunk_of(length)
    held = {"to": np.zeros(5000, dtype), "pool": pool}
    given = ("to", "pool", 5000, places, chunk, KEY, pool.itemsize)
    left = run(ptx, "fill", held, *given)["to"]
    assert (left == kernels.filled(pool, 5000, KEY)).all()
    if length == 3000 and dtype == "int32":
        assert (left != kernels.filled(pool, 5000, KEY + 1)).any()


RIGHT = np.array([1, -2, np.nan, np.inf, -np.inf, 0, 1e-3, 5], np.float32)


@pytest.mark.parametrize("place", range(len(RIGHT)))
@pytest.mark.parametrize("wrong", [7.0, np.nan, np.inf, -np.inf])
def test_one_wrong_float_is_found_wherever_it_is(
    ptx: str, place: int, wrong: float
) -> None:
    got = RIGHT.copy()
    got[place] = wrong
    is_same = wrong == RIGHT[place] or (np.isnan(wrong) and np.isnan(RIGHT[place]))
    assert compared(ptx, got, RIGHT) == (None if is_same else (place, 1))


def test_a_tolerance_holds_for_finite_numbers_alone(ptx: str) -> None:
    got = RIGHT + np.float32(0.01)
    assert compared(ptx, got, RIGHT, 0.02) is None
    assert compared(ptx, got, RIGHT, 0.001) == (0, 5)
    halves = RIGHT.astype(np.float16)
    assert compared(ptx, halves + np.float16(0.5), halves, 0.6) is None
    whole = np.array([3, 2**31 - 1, -5], np.int32)
    assert compared(ptx, whole, whole) is None
    assert compared(ptx, whole + np.int32([0, 0, 1]), whole) == (2, 1)
    # inputs are compared bit by bit, whatever they are
    for dtype in (np.uint8, np.uint16, np.uint64):
        bits = np.arange(9).astype(dtype)
        assert compared(ptx, bits, bits) is None
        assert compared(ptx, np.where(bits == 5, 6, bits).astype(dtype), bits) == (5, 1)


def test_poison_is_no_result_even_where_no_number_is_right(ptx: str) -> None:
    right = np.full(8, np.nan, np.float32)
    unwritten = kernels.poison(4 * 8, KEY).view(np.float32)
    got = np.where(np.arange(8) == 5, unwritten, right)
    assert compared(ptx, got, right) == (5, 1)


@pytest.mark.parametrize("dtype", [np.int32, np.uint32, np.int64, np.uint64])
def test_a_whole_number_that_is_right_may_look_like_poison(
    ptx: str, dtype: type
) -> None:
    # keys of 31 bits meet it: one in 2^31 of them, of 262,144 in each timed call
    right = kernels.poison(64, KEY).view(dtype)
    assert compared(ptx, right, right) is None
    other = right.copy()
    other[3] += 1
    assert compared(ptx, right, other) == (3, 1)


def test_a_byte_that_is_right_is_no_poison_though_it_looks_so(ptx: str) -> None:
    poisoned = kernels.poison(64, KEY)
    # NaN as float8_e4m3fn, which a result may be
    assert (poisoned[3::4] == 0x7F).all()
    assert compared(ptx, poisoned, poisoned) is None
    # the same where NumPy looks for it
    slot = Slot("out", 0, "uint8", (64,), "device", 0, 64, False, True)
    assert first_poisoned(slot, poisoned, poisoned) is None


def compared(
    ptx: str, got: Any, right: Any, bound: float = 0.0
) -> tuple[int, int] | None:
    held = {"arena": got, "right": right, "found": nothing_found()}
    kind = ord(right.dtype.kind)
    exact = np.float64(bound)
    given = ("arena", 0, "right", len(right), right.itemsize, kind, exact, KEY, "found")
    first, how_many = run(ptx, "compare", held, *given)["found"]
    return (int(first), int(how_many)) if how_many else None


def test_a_changed_word_changes_the_digest(ptx: str) -> None:
    words = np.arange(1000, dtype=np.uint32)

    def digest(held: Any, key: int = KEY) -> int:
        arrays = {"words": held, "sum": np.zeros(1, np.uint64)}
        return int(run(ptx, "digest", arrays, "words", 1000, key, "sum")["sum"][0])

    # two words that are made to take the place of one another, for a guessed key
    guess = 1
    third, last = kernels.mix(np.array([3, 700], np.uint32) ^ np.uint32(guess))
    forged = words.copy()
    forged[3], forged[700] = words[700] ^ third ^ last, words[3] ^ third ^ last
    assert digest(forged, guess) == digest(words, guess)
    assert digest(forged) != digest(words)

    swapped = words.copy()
    swapped[[3, 700]] = swapped[[700, 3]]
    assert digest(words) == digest(words.copy()) != digest(swapped)
