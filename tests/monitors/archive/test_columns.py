"""A column comes back as it was, whatever its numbers are."""

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from warpbook_monitors.archive.columns import (
    MAX_ROWS,
    DamagedColumn,
    pack_column,
    unpack_column,
)

_numbers = st.one_of(
    st.none(),
    st.floats(allow_nan=False, allow_infinity=False),
    st.integers(-(2**52), 2**52).map(float),
    st.decimals(-1000, 1000, places=5).map(float),
)


@given(st.lists(_numbers, max_size=60))
def test_every_column_comes_back_exactly(numbers: list[float | None]) -> None:
    column = np.array(numbers, dtype=np.float64)
    again = unpack_column(pack_column(column), len(column))
    np.testing.assert_array_equal(again, column)


def test_what_nvml_tells_takes_less_than_a_byte_a_value() -> None:
    steps = np.random.default_rng(0).integers(-3, 4, 3000)
    for column in (1980.0 + 15 * steps, np.round(0.5 + steps / 1000, 5)):
        assert len(pack_column(column)) < len(column)


@given(st.binary(max_size=200), st.integers(0, 50))
def test_other_bytes_are_refused_and_nothing_else(packed: bytes, rows: int) -> None:
    try:
        assert len(unpack_column(packed, rows)) == rows
    except DamagedColumn:
        pass


def test_a_bomb_is_not_inflated() -> None:
    bomb = pack_column(np.tile([1.0, 2.0], MAX_ROWS // 2))
    assert len(bomb) < 10_000
    with pytest.raises(DamagedColumn):
        unpack_column(bomb, 10)
    with pytest.raises(DamagedColumn, match="too many"):
        unpack_column(bomb, MAX_ROWS + 1)
