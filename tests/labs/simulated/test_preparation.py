"""What of an output nobody wrote."""

from __future__ import annotations

import numpy as np

from warpbook_labs.cases.sampling import public_cases
from warpbook_labs.engines.simulated.preparation import PreparedCalls
from warpbook_labs.lab.loader import load_all


def test_small_whole_numbers_are_nothing_only_where_all_are_as_they_were() -> None:
    loaded = load_all()["int8-linear"]
    prepared = PreparedCalls(loaded, public_cases(loaded.lab)[0])
    (codes,) = (output for output in prepared.outputs if output.dtype == "int8")
    untouched = prepared.to_run().calls[0].data[codes.name]
    assert prepared.memory(codes, untouched).first_unwritten == 0
    # a few may be right by chance
    written = np.frombuffer(untouched, np.int8).copy()
    written[0] ^= 1
    assert prepared.memory(codes, written.tobytes()).first_unwritten is None
