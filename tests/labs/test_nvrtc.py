"""What compiling leaves behind in the process that compiles."""

from __future__ import annotations

from warpbook_labs.compiler.nvrtc import compile_to_ptx


def test_no_byte_of_the_process_changes() -> None:
    # nothing to say: the compiler's log is the one byte that ends it
    compiled = compile_to_ptx('extern "C" __global__ void nothing() {}')
    assert compiled.log == ""
    # Python has one object for each string of one byte
    assert [bytes([number])[0] for number in range(256)] == list(range(256))
