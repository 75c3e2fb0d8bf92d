"""Inline PTX of a Triton kernel, run by the interpreter of PTX, element by element."""

from __future__ import annotations

import importlib
import re
from collections.abc import Sequence
from typing import Any

import numpy as np
from numpy.typing import NDArray

from warpbook_labs.engines.interpreter.ptx.machine.machine import Machine
from warpbook_labs.engines.interpreter.ptx.text.errors import Unsupported

_THREADS = 256
#: registers by the letter of their constraint (LLVM, "Inline Assembler Expressions")
_REGISTERS = {"f": "f32", "d": "f64", "r": "b32", "l": "b64", "h": "b16"}
_OPERAND = re.compile(r"\$(\$|\d+|\{\d+\})")

Numbers = NDArray[Any]


def mend_assembly(builder: Any, handle: Any) -> None:
    """Have Triton's interpreter run `tl.inline_asm_elementwise`."""

    def create_inline_asm(
        self: Any,
        text: str,
        constraints: str,
        given: Sequence[Any],
        types: Sequence[Any],
        is_pure: bool,
        pack: int,
    ) -> _Results:
        if pack != 1:
            raise Unsupported(f"inline_asm_elementwise with pack={pack}")
        wanted = [
            importlib.import_module("triton.runtime.interpreter")._get_np_dtype(
                type_.scalar
            )
            for type_ in types
        ]
        outputs = run(text, constraints, [tensor.data for tensor in given], wanted)
        return _Results(
            [
                handle(output, kind.scalar)
                for output, kind in zip(outputs, types, strict=True)
            ]
        )

    builder.create_inline_asm = create_inline_asm


class _Results:
    """What Triton asks an operation for."""

    def __init__(self, results: list[Any]) -> None:
        self._results = results

    def get_result(self, number: int) -> Any:
        return self._results[number]

    def get_num_results(self) -> int:
        return len(self._results)


def run(
    text: str, constraints: str, given: Sequence[Numbers], wanted: Sequence[Any]
) -> list[Numbers]:
    """Run PTX on each element.

    Args:
        text: with $0, $1, ... for its operands, results first.
        constraints: such as "=f,f,r".

    Raises:
        PtxError: it can't be run.
        ValueError: it does what a GPU would not let it.
    """
    kinds = [word.strip() for word in constraints.split(",")]
    registers = [_REGISTERS.get(kind.lstrip("=&")) for kind in kinds]
    count, shape = len(wanted), given[0].shape if given else (1,)
    length = int(np.prod(shape, dtype=np.int64))
    arrays = [np.ascontiguousarray(np.broadcast_to(array, shape)) for array in given]
    sizes = [np.dtype(dtype).itemsize for dtype in wanted]
    sizes += [array.itemsize for array in arrays]
    for register, size in zip(registers, sizes, strict=False):
        if register is None or int(register[1:]) != 8 * size:
            raise Unsupported(f'inline_asm_elementwise with "{constraints}"')
    if len(registers) != len(sizes):
        raise Unsupported(f'inline_asm_elementwise with "{constraints}"')
    machine = Machine(_program(text, [str(register) for register in registers], count))
    out = [
        machine.empty(f"${n}", length * size) for n, size in enumerate(sizes[:count])
    ]
    held = [machine.put(f"${count + n}", array) for n, array in enumerate(arrays)]
    grid = (max(1, -(-length // _THREADS)), 1, 1)
    report = machine.run("run", grid, (_THREADS, 1, 1), [*out, *held, length])
    if report.findings:
        raise ValueError(f"inline assembly: {report.findings[0].message}")
    return [
        machine.read(register, dtype).reshape(shape)
        for register, dtype in zip(out, wanted, strict=True)
    ]


def _program(text: str, registers: list[str], results: int) -> str:
    """Write a kernel that loads operands, does what is asked, and stores results."""

    def name(match: re.Match[str]) -> str:
        inside = match[1].strip("{}")
        return "$" if inside == "$" else f"%operand{inside}"

    places = [f".param .u64 p{n}" for n in range(len(registers))]
    lines = [
        ".version 8.0",
        ".target sm_90",
        ".address_size 64",
        f".visible .entry run({', '.join(places)}, .param .u32 count) {{",
        ".reg .b32 %i<5>; .reg .b64 %at<3>; .reg .pred %beyond;",
        *(f".reg .{kind} %operand{n};" for n, kind in enumerate(registers)),
        "mov.u32 %i0, %ctaid.x; mov.u32 %i1, %tid.x; ld.param.u32 %i3, [count];",
        f"mad.lo.s32 %i2, %i0, {_THREADS}, %i1; setp.ge.s32 %beyond, %i2, %i3;",
        "@%beyond bra $end;",
    ]

    def at(number: int) -> str:
        width = int(registers[number][1:]) // 8
        return (
            f"ld.param.u64 %at0, [p{number}]; mul.wide.s32 %at1, %i2, {width}; "
            "add.s64 %at2, %at0, %at1;"
        )

    for number in range(results, len(registers)):
        kind = registers[number]
        lines += [at(number), f"ld.global.{kind} %operand{number}, [%at2];"]
    body = _OPERAND.sub(name, text).strip()
    lines += ["{", body if body.endswith((";", "}")) else f"{body};", "}"]
    for number in range(results):
        kind = registers[number]
        lines += [at(number), f"st.global.{kind} [%at2], %operand{number};"]
    return "\n".join([*lines, "$end: ret;", "}"])
