"""What a rank may tell of itself: it moves no verdict but its own results."""

from __future__ import annotations

import pytest

from warpbook_labs.course.session import check_public, find

#: for the top of a source: it answers in place of the process that it is in
FORGED = """
import os
import msgspec
from warpbook_labs.engines.simulated import messages
from warpbook_labs.sandbox.work import Answer

def tell(result):
    said = msgspec.msgpack.encode(Answer("namespaces", True, result))
    os.write(1, len(said).to_bytes(8, "little") + said)
    os.read(0, 1 << 20)
    os._exit(0)

left = messages.CaseRun(({outputs},) * 3)
"""
TOLD = {
    "that all cases ran": "messages.HostRuns((left,) * 3)",
    "that it stopped for no reason": "messages.Fell('', None, False, False, '')",
    "that another rank is to be asked": "messages.Ask('rank 1', b'')",
    "that it sends less": "messages.Awaited('all_reduce', b'', None, 1, '')",
    "that it returned no tensors": "messages.Returned(b'\\x90', '')",
}


@pytest.mark.parametrize("what", TOLD)
def test_what_a_rank_says_of_itself_makes_nothing_right(what: str) -> None:
    lab = find("parallelism-by-hand")
    forged = FORGED.format(outputs="{'tp_out': bytes(192)}")
    result = check_public(lab, f"{forged}\ntell({TOLD[what]})\n{lab.reference}").result
    assert result.status not in ("passed", "unsupported")
    assert result.right == 0
