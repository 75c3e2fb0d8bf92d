"""Which line of the source wrote each word of global memory last."""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

from warpbook_labs.engines.interpreter.ptx.memory.spaces import GLOBAL_BASE, Buffer
from warpbook_labs.engines.interpreter.ptx.memory.state import State

_WORD_BYTES = 4
_MOST_LINE = 2**16 - 1


class Writers:
    """The lines, over the launches of a program."""

    def __init__(self) -> None:
        """Begin with nothing written."""
        #: by word; 0 is no line that is known
        self._lines = np.zeros(0, np.uint16)

    def note(self, state: State) -> None:
        """Take over what a launch has written, where it has."""
        words = len(state.memory.space.data) // _WORD_BYTES + 1
        self._lines.resize(max(words, len(self._lines)), refcheck=False)
        code = state.linked.code
        line_of = np.array(
            [min(instruction.line or 0, _MOST_LINE) for instruction in code] or [0]
        )
        cells, places = state.global_tracker.writers()
        at = cells * state.global_cell_bytes // _WORD_BYTES
        self._lines[at] = line_of[places]

    def lines(self, buffer: Buffer) -> NDArray[np.uint16]:
        """Give the line of each word of a buffer, from its beginning on."""
        begin = buffer.address - GLOBAL_BASE
        starts = np.arange(begin, begin + buffer.size_bytes, _WORD_BYTES)
        at = starts // _WORD_BYTES
        if not len(self._lines):
            return np.zeros(len(at), np.uint16)
        return self._lines[np.minimum(at, len(self._lines) - 1)]
