"""Memory so large that several threads work on it is treated as small memory is."""

import numpy as np
import pytest

from warpbook_labs.engines.host import regions
from warpbook_labs.engines.host.messages import Slot
from warpbook_labs.engines.host.regions import HostRegion
from warpbook_labs.gpu.kernels import filled

#: in float32 three parts, the last of them short
COUNT = 2 * (regions.PART_BYTES // 4) + 12_345
SIDES = ("learner", "baseline")
SLOT = Slot("x", 0, "float32", (COUNT,), "host", 4096, 4 * COUNT, True, True)


def made() -> HostRegion:
    pools = {"x": np.arange(3000, dtype=np.float32)}
    region = HostRegion("host", SLOT.offset + SLOT.size_bytes, pools, SIDES)
    region.own()
    return region


def test_an_input_in_parts_is_the_one_that_the_gpu_puts_together() -> None:
    region = made()
    region.fill(SLOT, "x", 17)
    region.load([SLOT], "learner")
    region.complete("learner")
    pool = np.arange(3000, dtype=np.float32)
    assert (region.read(SLOT, "learner") == filled(pool, COUNT, 17)).all()
    assert not region.is_changed(SLOT, "learner")


@pytest.mark.parametrize("place", [0, COUNT // 2, COUNT - 1])
def test_one_changed_number_is_seen_in_each_part(place: int) -> None:
    region = made()
    region.fill(SLOT, "x", 17)
    region.load([SLOT], "learner")
    region.complete("learner")
    values = region.read(SLOT, "learner")
    values[place] += 1
    region.write(SLOT, values, "learner")
    assert region.is_changed(SLOT, "learner")


@pytest.mark.parametrize("place", [0, COUNT // 2, COUNT - 1])
def test_the_first_wrong_number_is_named_in_each_part(place: int) -> None:
    region = made()
    values = np.ones(COUNT, np.float32)
    region.write(SLOT, values, "baseline")
    values[[place, COUNT - 1]] = 7
    region.write(SLOT, values, "learner")
    for side in SIDES:
        region.keep([SLOT], side)
    wrong = len({place, COUNT - 1})
    assert region.wrong(SLOT, 0.0) == (
        f"x[{place}] is wrong in a timed call, and {wrong} of {COUNT:,} elements are."
    )
    assert region.wrong(SLOT, 10.0) == ""


@pytest.mark.parametrize("place", [0, COUNT // 2, COUNT - 1])
def test_what_nobody_wrote_is_found_in_each_part(place: int) -> None:
    region = made()
    region.poison(SLOT, "learner")
    values = region.read(SLOT, "learner")
    left = values[place].copy()
    values[:] = 1
    values[place] = left
    assert region.first_unwritten(SLOT, values) == 4 * place
