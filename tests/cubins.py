"""What is in a cubin, which is an ELF file."""

from __future__ import annotations

import struct

_NO_BYTES = 8


def code_of(cubin: bytes) -> dict[str, bytes]:
    """Return the machine code of each kernel, by the name of its section."""
    (table,) = struct.unpack_from("<Q", cubin, 0x28)
    count, names_at = struct.unpack_from("<HH", cubin, 0x3C)
    sections = [
        struct.unpack_from("<IIQQQQ", cubin, table + 64 * at) for at in range(count)
    ]
    names = sections[names_at][4]
    code = {}
    for name_at, kind, _, _, begin, size in sections:
        at = names + name_at
        name = cubin[at : cubin.index(b"\0", at)].decode()
        if name.startswith(".text.") and kind != _NO_BYTES:
            code[name] = cubin[begin : begin + size]
    return code
