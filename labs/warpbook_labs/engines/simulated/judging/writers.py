"""Which lines computed what memory holds, and which lines wrote it there last.

A copy writes what another line computed: of a wrong number both lines are worth a look.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import numpy as np
from numpy.typing import NDArray

from warpbook_labs.sandbox.lines.objects import Lines, in_order, merge

if TYPE_CHECKING:
    from .memory import Span

_MOST_LINE = 2**16 - 1
#: of results, as `cases/execution.py` says
_WORD_BYTES = 4
#: from which a storage's values came, the nearest
_MOST_SOURCES = 16

#: of each byte; one number where all have the same, 0 where it is not known
_Lines = int | NDArray[np.uint16]


class Writers:
    """The lines of one storage."""

    def __init__(self, size_bytes: int) -> None:
        self._size_bytes = size_bytes
        self._last: _Lines = 0
        self._computed: _Lines = 0
        #: the lines of the work from which the values came, with how far away each is
        self.sources: Lines = {}

    def forget(self) -> None:
        """Nothing of it is written any more."""
        self._last = self._computed = 0
        self.sources = {}

    def come_from(self, target: Span, lines: Lines) -> None:
        """Note from which lines what is written to a span came."""
        merged = dict(lines)
        if target.size_bytes < self._size_bytes:
            merge(merged, self.sources, 1)
        self.sources = {line: merged[line] for line in in_order(merged)[:_MOST_SOURCES]}

    def compute(self, target: Span, line: int) -> None:
        """Note that a line computes what a span of this storage holds."""
        line = _bounded(line)
        self._last = self._set(self._last, target, line)
        self._computed = self._set(self._computed, target, line)

    def copy(self, source: Span, target: Span, line: int) -> None:
        """Note that a line copies a span to one of this storage.

        Args:
            source: of any storage, in the shape of the target.
        """
        self._last = self._set(self._last, target, _bounded(line))
        computed = source.storage.writers._of_elements(source)
        self._computed = self._set(self._computed, target, computed)

    def words(self) -> tuple[bytes, bytes]:
        """Give for each 4 bytes the line that wrote them last, and that computed them.

        Returns:
            Both as uint16, in little endian.
        """
        return self._by_word(self._last), self._by_word(self._computed)

    def _of_elements(self, span: Span) -> _Lines:
        lines = self._computed
        if isinstance(lines, int):
            return lines
        return np.array(_by_byte(span, lines)[..., 0])

    def _set(self, lines: _Lines, span: Span, value: _Lines) -> _Lines:
        if not span.array.size:
            return lines
        is_whole = span.is_dense and span.end - span.begin == self._size_bytes
        if isinstance(value, int) and (is_whole or value is lines):
            return value
        if isinstance(lines, int):
            lines = np.full(self._size_bytes, lines, np.uint16)
        new = value if isinstance(value, int) else value[..., np.newaxis]
        _by_byte(span, lines)[...] = new
        return lines

    def _by_word(self, lines: _Lines) -> bytes:
        if isinstance(lines, int):
            count = -(-self._size_bytes // _WORD_BYTES)
            return np.full(count, lines, "<u2").tobytes()
        return lines[::_WORD_BYTES].astype("<u2").tobytes()


def _bounded(line: int) -> int:
    return min(max(line, 0), _MOST_LINE)


def _by_byte(span: Span, lines: NDArray[np.uint16]) -> NDArray[Any]:
    """Show the lines of a span's bytes: one more side, of an element's bytes."""
    item = lines.itemsize
    shown: NDArray[Any] = np.ndarray(
        (*span.array.shape, span.array.itemsize),
        lines.dtype,
        lines.data,
        item * span.begin,
        (*(item * stride for stride in span.array.strides), item),
    )
    return shown
