"""Cells in the forms that rewrites read."""

from __future__ import annotations

import pytest

from warpbook_profiler.advice.attention.written_softmax import with_softmax
from warpbook_profiler.advice.code.cell_code import CellCode
from warpbook_profiler.advice.rewriting.plain_forms import plain


@pytest.mark.parametrize(
    "place",
    [
        "m.nonzero(as_tuple=True)[0]",
        "torch.where(m)[0]",
        "torch.nonzero(m).squeeze(1)",
        "m.nonzero().flatten()",
    ],
)
def test_places_of_a_mask_are_the_mask(place: str) -> None:
    source = f"at = {place}\nx[at] = 0\n"
    written, _ = plain(CellCode(source))
    assert written.source == "at = m\nx[at] = 0\n"


@pytest.mark.parametrize(
    "source",
    [
        # the first place alone
        "at = m.nonzero()[0]\nx[at] = 0\n",
        # one place has no axis any more
        "at = m.nonzero().squeeze()\nx[at] = 0\n",
        # the mask is another one by then
        "at = torch.where(m)[0]\nm &= x > 0\nx[at] = 0\n",
        "at = torch.where(m.view(-1))[0]\nm &= x > 0\nx[at] = 0\n",
    ],
)
def test_other_places_stay(source: str) -> None:
    written, _ = plain(CellCode(source))
    assert written.source in ("", source)


def test_exponents_that_are_read_elsewhere_are_no_softmax() -> None:
    source = (
        "p = torch.softmax(s, dim=-1)\ne = torch.exp(z)\n"
        "gate = e / e.sum(-1, keepdim=True)\npeak = e.max()\n"
    )
    assert with_softmax(CellCode(source)).source == source
