"""Figures as a person reads them: parts of one whole add up."""

from __future__ import annotations

import pytest

from warpbook_monitors.units import parts_of_one, share


@pytest.mark.parametrize(
    ("ratios", "written"),
    [
        ((0.435, 0.295, 0.27), "44 % 29 % 27 %"),
        ((0.4267, 0.2967, 0.2766), "43 % 30 % 27 %"),
        # a small one keeps its decimal, and the others make room for it
        ((0.605, 0.355, 0.04), "61 % 35 % 4.0 %"),
        ((0.29, 0.57), "29 % 57 %"),
        ((0.9995, 0.0004), "100 % < 0.1 %"),
        # what overlaps is more than the whole
        ((0.7, 0.6), "70 % 60 %"),
        ((), ""),
    ],
)
def test_parts_of_one_whole_add_up(ratios: tuple[float, ...], written: str) -> None:
    assert " ".join(share(part) for part in parts_of_one(ratios)) == written
