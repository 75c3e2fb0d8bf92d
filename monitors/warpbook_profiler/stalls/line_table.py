"""The line table of a cubin: which source line each instruction was compiled from.

A cubin is an ELF file whose `.debug_line` has DWARF 2, with one sequence of rows for
each function. NVIDIA's extended opcode 0x90 says of the rows after it which row called
what was inlined there, so that the calls that lead to an instruction are known.
"""

from __future__ import annotations

import bisect
import re
import struct
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field
from pathlib import PurePosixPath

from warpbook_profiler.model.errors import TraceError

_MACHINE_CUDA = 190
_RELA = 4
#: bytes, rows, files, functions, and bytes of a name: a table with more is not read
_MOST_BYTES, _MOST_ROWS, _MOST_FILES = 64 << 20, 1_000_000, 10_000
_MOST_FUNCTIONS, _MOST_NAME, _MOST_LINE = 20_000, 4096, 1 << 31
#: within one another: what is called deeper has no line
_MOST_CALLS = 32
#: a place in a comment of PTX
_PLACE = re.compile(r"([^\s\[\]:]{1,200}):(\d{1,9}):\d{1,9}")
#: the sections of a cubin that tell of PTX: its text, and its lines by instruction
_OF_PTX = ("ptx_txt", "line_sass")
#: bytes of an instruction since Volta, and the bits that say which it is
_INSTRUCTION, _CODE = 16, 0xFFF
_BARRIER, _BRANCHES = 0xB1D, frozenset((0x941, 0x944, 0x947, 0x94D, 0x950))
#: instructions behind a barrier that need not wait for it
_MOST_BEHIND = 16
_COPY, _ADVANCE_PC, _ADVANCE_LINE, _SET_FILE, _ADD_PC, _FIXED_PC = 1, 2, 3, 4, 8, 9
_END_SEQUENCE, _SET_ADDRESS, _INLINED_AT = 1, 2, 0x90


class BadCubin(TraceError):
    """It is no cubin, or its line table is damaged."""


@dataclass(frozen=True)
class SourceLine:
    """A line of a file, as the compiler was given it."""

    path: str
    #: from 1
    line: int


@dataclass(frozen=True)
class _Row:
    file: int
    line: int
    #: number of the row that called this, from 1; 0 is the function itself
    caller: int


@dataclass
class _Rows:
    """The rows of one function, by ascending address."""

    addresses: list[int] = field(default_factory=list)
    rows: list[_Row] = field(default_factory=list)

    def at(self, offset: int) -> int:
        """Return the position of an instruction's row; -1 before the first."""
        return bisect.bisect_right(self.addresses, offset) - 1


class _PtxCalls:
    """Calls by the comments of PTX: `f.py:2:1 @[ g.py:3:1 ]` is called in line 3."""

    def __init__(
        self, rows: _Rows, of_ptx: _Rows, lines: list[str], files: dict[int, str]
    ) -> None:
        self._rows, self._of_ptx = rows, of_ptx
        names: dict[str, list[str]] = {}
        for path in files.values():
            names.setdefault(PurePosixPath(path).name, []).append(path)
        self._paths = {name: paths[0] for name, paths in names.items() if not paths[1:]}
        self._comments: list[str] = []
        for line in lines:
            is_place = line.lstrip().startswith(".loc")
            before = self._comments[-1] if self._comments else ""
            self._comments.append(line.partition("//")[2] if is_place else before)

    def calls(self, offset: int) -> tuple[SourceLine, ...]:
        """Return the lines of an instruction; none where both tables differ."""
        row, of_ptx = self._rows.at(offset), self._of_ptx.at(offset)
        if row < 0 or of_ptx < 0:
            return ()
        line = self._of_ptx.rows[of_ptx].line
        if not 0 < line <= len(self._comments):
            return ()
        places = _PLACE.findall(self._comments[line - 1])[:_MOST_CALLS]
        calls = tuple(
            SourceLine(self._paths[name], int(number))
            for name, number in places
            if name in self._paths
        )
        is_whole = calls and len(calls) == len(places)
        return calls if is_whole and calls[0].line == self._rows.rows[row].line else ()


class LineTable:
    """Lines by function and by the offset of an instruction in it."""

    def __init__(self, cubin: bytes) -> None:
        """Read the table; one without any has no functions.

        Raises:
            BadCubin: it can't be read.
        """
        self._cubin = cubin
        self._sections: dict[str, _Section] = {}
        self._files: dict[int, str] = {}
        self._of_ptx: dict[str, _PtxCalls] = {}
        self._functions: dict[str, _Rows] = {}
        if len(cubin) > _MOST_BYTES:
            raise BadCubin("The cubin is too large.")
        with _reading():
            self._read()

    @property
    def functions(self) -> frozenset[str]:
        """Return the names of those that have lines."""
        return frozenset(self._functions)

    def calls(self, function: str, offset: int) -> tuple[SourceLine, ...]:
        """Return the lines of an instruction, the innermost call first.

        Args:
            function: its name as the cubin has it.
            offset: of the instruction in it, in bytes.
        """
        rows = self._functions.get(function)
        if rows is None:
            return ()
        if function in self._of_ptx:
            calls = self._of_ptx[function].calls(offset)
            if calls:
                return calls
        at = rows.at(offset)
        found: list[SourceLine] = []
        while 0 <= at < len(rows.rows) and len(found) < _MOST_CALLS:
            row = rows.rows[at]
            if 0 < row.line < _MOST_LINE and row.file in self._files:
                found.append(SourceLine(self._files[row.file], row.line))
            at = row.caller - 1
        return tuple(found)

    def take_ptx(self, function: str, text: str) -> bool:
        """Take calls of what is inlined from the comments of a function's PTX.

        Triton before 3.7 tells them nowhere else. Returns whether the cubin was made
        of this text.

        Raises:
            BadCubin: the lines of the PTX can't be read.
        """
        rows, sections = self._functions.get(function), self._sections
        kept, program = (sections.get(f".nv_debug_{of}") for of in _OF_PTX)
        if rows is None or kept is None or program is None:
            return False
        lines = text.split("\n")
        if not _is_same(lines, self._cubin[kept.start : kept.end].split(b"\0")):
            return False
        data = self._cubin[program.start : program.end]
        with _reading():
            places = _function_names(self._cubin, sections, ".nv_debug_line_sass")
            for place, of_ptx in _Program(data).sequences():
                if places.get(place) == function:
                    self._of_ptx[function] = _PtxCalls(rows, of_ptx, lines, self._files)
        return function in self._of_ptx

    @property
    def without_calls(self) -> frozenset[str]:
        """Return the functions with lines of several files that tell no calls."""
        return frozenset(
            name
            for name, rows in self._functions.items()
            if len({row.file for row in rows.rows}) > 1
            and not any(row.caller for row in rows.rows)
        )

    def barrier_before(self, function: str, offset: int) -> int:
        """Return the offset of the barrier that an instruction waits behind.

        A warp goes on behind `BAR.SYNC` to the first instruction that needs the others,
        and is sampled there. The instruction itself is returned if none is before it.
        """
        text = self._sections.get(f".text.{function}")
        if text is None:
            return offset
        for at in range(
            offset, max(offset - _MOST_BEHIND * _INSTRUCTION, -1), -_INSTRUCTION
        ):
            place = text.start + at
            if not text.start <= place <= text.end - _INSTRUCTION:
                break
            code = struct.unpack_from("<Q", self._cubin, place)[0] & _CODE
            if code == _BARRIER:
                return at
            if code in _BRANCHES and at < offset:
                break
        return offset

    def _read(self) -> None:
        cubin = self._cubin
        sections = self._sections = dict(_sections(cubin))
        lines = sections.get(".debug_line")
        names = _function_names(cubin, sections, ".debug_line")
        if lines is None:
            return
        program = _Program(cubin[lines.start : lines.end])
        self._files = program.files
        for place, rows in program.sequences():
            name = names.get(place)
            if name is not None:
                self._functions[name] = rows


@contextmanager
def _reading() -> Iterator[None]:
    """Raise `BadCubin` where what is read is damaged."""
    try:
        yield
    except (struct.error, ArithmeticError, LookupError, ValueError) as problem:
        raise BadCubin(f"The line table is damaged: {problem}") from None


@dataclass(frozen=True)
class _Section:
    start: int
    end: int
    kind: int


def _sections(cubin: bytes) -> Iterator[tuple[str, _Section]]:
    if (
        cubin[:5] != b"\x7fELF\x02"
        or struct.unpack_from("<H", cubin, 18)[0] != _MACHINE_CUDA
    ):
        raise BadCubin("It is not a cubin.")
    (table,) = struct.unpack_from("<Q", cubin, 40)
    size, count, names_at = struct.unpack_from("<HHH", cubin, 58)
    raw = [
        struct.unpack_from("<IIQQQQIIQQ", cubin, table + size * at)
        for at in range(count)
    ]
    names = raw[names_at][4]
    for name, kind, _, _, start, length, _, _, _, _ in raw:
        yield (
            _text(cubin, names + name),
            _Section(start, min(start + length, len(cubin)), kind),
        )


def _is_same(lines: list[str], kept: list[bytes]) -> bool:
    """Return whether PTX is what a cubin keeps of it: without comments and places."""
    return len(lines) == len(kept) and all(
        line.strip().startswith(one.decode(errors="replace"))
        for line, one in zip(lines, kept, strict=True)
    )


def _function_names(
    cubin: bytes, sections: dict[str, _Section], program: str
) -> dict[int, str]:
    """Return names by where in a line program their address is set."""
    relocations = sections.get(f".rela{program}") or sections.get(f".rel{program}")
    symbols, texts = sections.get(".symtab"), sections.get(".strtab")
    if relocations is None or symbols is None or texts is None:
        return {}
    size = 24 if relocations.kind == _RELA else 16
    if relocations.end - relocations.start > size * _MOST_FUNCTIONS:
        raise BadCubin("The line table has too many functions.")
    names: dict[int, str] = {}
    for at in range(relocations.start, relocations.end - size + 1, size):
        place, info = struct.unpack_from("<QQ", cubin, at)
        (name,) = struct.unpack_from("<I", cubin, symbols.start + 24 * (info >> 32))
        names[place] = _text(cubin, texts.start + name).removeprefix(".text.")
    return names


class _Program:
    """A line number program of DWARF 2."""

    def __init__(self, data: bytes) -> None:
        self.files: dict[int, str] = {}
        length, version, header = struct.unpack_from("<IHI", data)
        # a linker puts one behind the other: the first is read
        self._data = data[: 4 + length]
        if version > 4:
            raise BadCubin(f"Line tables in DWARF {version} are not supported.")
        # since DWARF 4 the maximum number of operations precedes the flag
        at = 10 + (version >= 4)
        self._step = data[10]
        self._base, self._range, self._first = struct.unpack_from("<bBB", data, at + 2)
        self._lengths = data[at + 5 : at + 4 + self._first]
        self._at: int = at + 4 + self._first
        folders = ["", *self._strings()]
        for number, name in enumerate(self._strings(), start=1):
            at, _, _ = self._unsigned(), self._unsigned(), self._unsigned()
            folder = folders[at] if at < len(folders) else ""
            self.files[number] = str(PurePosixPath(folder) / name)
        self._at = 10 + header

    def sequences(self) -> Iterator[tuple[int, _Rows]]:
        """Give rows, with where the address of their function is set."""
        rows, place = _Rows(), -1
        address, file, line, caller = 0, 1, 1, 0
        left = _MOST_ROWS

        def copied() -> None:
            nonlocal left
            if not left:
                raise BadCubin("The line table is too long.")
            left -= 1
            rows.addresses.append(address)
            rows.rows.append(_Row(file, line, caller))

        while self._at < len(self._data):
            code = self._byte()
            if code >= self._first:
                code -= self._first
                address += code // self._range * self._step
                line += self._base + code % self._range
                copied()
            elif code == 0:
                length = self._unsigned()
                end = self._at + length
                extended = self._byte()
                if extended == _END_SEQUENCE:
                    yield place, rows
                    rows, place = _Rows(), -1
                    address, file, line, caller = 0, 1, 1, 0
                elif extended == _SET_ADDRESS:
                    place = self._at
                    address = struct.unpack_from("<Q", self._data, place)[0]
                elif extended == _INLINED_AT:
                    caller = self._unsigned()
                self._at = end
            elif code == _COPY:
                copied()
            elif code == _ADVANCE_PC:
                address += self._unsigned() * self._step
            elif code == _ADVANCE_LINE:
                line += self._signed()
            elif code == _SET_FILE:
                file = self._unsigned()
            elif code == _ADD_PC:
                address += (255 - self._first) // self._range * self._step
            elif code == _FIXED_PC:
                address += self._byte() | self._byte() << 8
            else:
                for _ in range(self._lengths[code - 1]):
                    self._unsigned()

    def _byte(self) -> int:
        self._at += 1
        return self._data[self._at - 1]

    def _unsigned(self) -> int:
        value = shift = 0
        while shift < 64:
            byte = self._byte()
            value |= (byte & 0x7F) << shift
            shift += 7
            if byte < 0x80:
                break
        return value

    def _signed(self) -> int:
        value = shift = byte = 0
        while shift < 64:
            byte = self._byte()
            value |= (byte & 0x7F) << shift
            shift += 7
            if byte < 0x80:
                break
        return value - (1 << shift) if byte & 0x40 else value

    def _strings(self) -> Iterator[str]:
        for _ in range(_MOST_FILES):
            text = _text(self._data, self._at)
            self._at = self._data.index(b"\0", self._at) + 1
            if not text:
                return
            yield text
        raise BadCubin("The line table has too many files.")


def _text(data: bytes, at: int) -> str:
    end = data.index(b"\0", at, at + _MOST_NAME)
    return data[at:end].decode(errors="replace")
