"""What autograd recorded of a window, from the numbers that its operators have.

Each node takes the next number of its thread. Where autograd records, torch notes with
each operator the number that the next node takes; where it is off, it notes none.
"""

from __future__ import annotations

import numpy as np

from warpbook_profiler.events.columns import NONE, rows_by
from warpbook_profiler.facts.trace import Trace

_OF_TORCH = "aten::"
#: numbers of a file may be any; no program makes as many
_MOST_NODES = 2**53


def autograd_nodes(trace: Trace) -> int | None:
    """Count the nodes that were made between the operators.

    Returns:
        None where no operator of torch is in the window, or too few to tell.
    """
    in_time = trace.operators.start_ns < trace.run.end_ns
    operators = trace.operators.where(~trace.operators.annotates & in_time)
    is_of_torch = [name.startswith(_OF_TORCH) for name in operators.names]
    if not np.array([*is_of_torch, False])[operators.name].any():
        return None
    numbered = operators.where(operators.sequence != NONE)
    if not len(numbered):
        return 0
    nodes, is_known = 0, False
    for rows in rows_by(numbered.track):
        sequence = numbered.sequence[rows]
        nodes += int(sequence.max() - sequence.min())
        # the node of a call shows in the number of the next call alone
        first, last = rows[0], rows[-1]
        is_known |= bool(numbered.start_ns[last] >= numbered.end_ns[first])
    return min(nodes, _MOST_NODES) if nodes or is_known else None
