"""Questions about kernels that were really compiled, and what is right."""

from __future__ import annotations

import json
import math
import random
from collections.abc import Callable
from pathlib import Path
from typing import Any

from warpbook_labs.lab.python.questions import Question
from warpbook_profiler.facts.occupancy import (
    MULTIPROCESSORS,
    PARTS,
    REGISTER_UNIT,
    Multiprocessor,
    occupancy,
)

Numbers = dict[str, Any]
_COMPILED: list[Numbers] = json.loads(
    Path(__file__).with_name("compiled.json").read_text(encoding="utf-8")
)["kernels"]
_CHIPS = {"sm_80": (8, 0), "sm_90": (9, 0), "sm_120": (12, 0)}
#: bytes per second, multiprocessors, and the nanoseconds that a load takes, about
_MEMORIES = {
    "sm_80": (2_039e9, 108, 560),
    "sm_90": (4_800e9, 132, 640),
    "sm_120": (1_792e9, 170, 700),
}
_BLOCKS = (32, 64, 96, 128, 192, 256, 384, 512, 640, 768, 1024)


def _room(chip: str) -> Multiprocessor:
    return MULTIPROCESSORS[_CHIPS[chip]]


def _multiprocessor(chip: str) -> Numbers:
    return {
        **_room(chip)._asdict(),
        "register_unit": REGISTER_UNIT,
        "parts": PARTS,
    }


def _right(kernel: Numbers, chip: str) -> Any:
    return occupancy(
        _room(chip), kernel["threads"], kernel["registers"], kernel["shared_bytes"]
    )


def _up(number: int, unit: int) -> int:
    return -(-number // unit) * unit


def _blocks_if(
    kernel: Numbers,
    chip: str,
    *,
    units: bool = True,
    parts: bool = True,
    reserved: bool = True,
    shared_units: bool = True,
    whole_warps: bool = True,
    most_blocks: int | None = None,
) -> int:
    """Count blocks as one would who forgets something."""
    room = _room(chip)
    warps = math.ceil(kernel["threads"] / 32) if whole_warps else kernel["threads"] / 32
    a_warp = kernel["registers"] * 32
    a_warp = _up(a_warp, REGISTER_UNIT) if units else a_warp
    held = PARTS * (room.registers // PARTS // a_warp)
    by_registers = held if parts else room.registers / a_warp
    shared = kernel["shared_bytes"] + (room.reserved_shared_bytes if reserved else 0)
    has_units = reserved and shared_units
    shared = max(1, _up(shared, room.shared_unit_bytes) if has_units else shared)
    return int(
        min(
            room.max_warps // warps,
            by_registers // warps,
            room.shared_bytes // shared,
            most_blocks or room.max_blocks,
        )
    )


#: what a kernel is looked for that tells right from wrong; by what learners are told
_TRAPS: dict[str, Callable[[Numbers, str], bool]] = {
    "registers come in units": lambda kernel, chip: (
        _blocks_if(kernel, chip, units=False) != _right(kernel, chip).blocks
    ),
    "registers lie in four parts": lambda kernel, chip: (
        _blocks_if(kernel, chip, parts=False) != _right(kernel, chip).blocks
    ),
    "a block takes a little more shared memory": lambda kernel, chip: (
        _blocks_if(kernel, chip, reserved=False) != _right(kernel, chip).blocks
    ),
    "shared memory comes in units": lambda kernel, chip: (
        _blocks_if(kernel, chip, shared_units=False) != _right(kernel, chip).blocks
    ),
    "a warp that is not full": lambda kernel, chip: (
        _blocks_if(kernel, chip, whole_warps=False) != _right(kernel, chip).blocks
    ),
    "small blocks": lambda kernel, chip: (
        _right(kernel, chip).limited_by == ("blocks",) and chip == "sm_120"
    ),
    "not even one fits": lambda kernel, chip: _right(kernel, chip).blocks == 0,
}


def questions(rng: random.Random) -> list[Question]:
    """Draw kernels as they were compiled, and some that lie where mistakes show."""
    drawn: list[tuple[str, Numbers, str]] = []
    for chip in _CHIPS:
        of_chip = [
            compiled_for
            for compiled_for in _COMPILED
            if compiled_for["architecture"] == chip
        ]
        for compiled in rng.sample(of_chip, 4):
            kernel = _kernel(compiled["registers"], compiled["shared_bytes"], rng)
            drawn.append((f"a kernel as it was compiled for {chip}", kernel, chip))
    for about, is_trap in _TRAPS.items():
        drawn += [(about, *_trapped(is_trap, rng)) for _ in range(2)]
    put = []
    for about, kernel, chip in drawn:
        given = {"kernel": kernel, "multiprocessor": _multiprocessor(chip)}
        put.append(Question("resident_blocks", given, about))
        put.append(Question("occupancy", given, about))
        put.append(
            Question("loads_in_flight", {**given, "memory": _memory(chip, rng)}, about)
        )
    return put


def _kernel(registers: int, shared_bytes: int, rng: random.Random) -> Numbers:
    return {
        "threads": rng.choice(_BLOCKS),
        "registers": registers,
        "shared_bytes": shared_bytes,
    }


def _trapped(
    is_trap: Callable[[Numbers, str], bool], rng: random.Random
) -> tuple[Numbers, str]:
    """Look for a kernel that tells whether something was thought of."""
    while True:
        chip = rng.choice(list(_CHIPS))
        kernel = {
            "threads": rng.choice([*_BLOCKS, rng.randint(1, 1024)]),
            "registers": rng.randint(16, 255),
            "shared_bytes": rng.choice(
                [0, 4096, 33 << 10, rng.randint(0, _room(chip).shared_bytes - 1024)]
            ),
        }
        if is_trap(kernel, chip):
            return kernel, chip


def _memory(chip: str, rng: random.Random) -> Numbers:
    bytes_per_s, multiprocessors, latency_ns = _MEMORIES[chip]
    return {
        "bytes_per_s": bytes_per_s,
        "multiprocessors": multiprocessors,
        "latency_ns": latency_ns + rng.randrange(-100, 101, 20),
        "load_bytes": rng.choice((2, 4, 8, 16)),
    }


def judge(question: Question, answer: Any) -> str:
    """Compare with what NVIDIA's own calculation gives."""
    given = question.arguments
    room = given["multiprocessor"]
    fields = {name: room[name] for name in Multiprocessor._fields}
    kernel = given["kernel"]
    right = occupancy(
        Multiprocessor(**fields),
        kernel["threads"],
        kernel["registers"],
        kernel["shared_bytes"],
    )
    limits = " and ".join(right.limited_by)
    why = f"; what allows no more: {limits}" if limits else "; not even one fits"
    if question.function == "resident_blocks":
        wanted = right.blocks
        return "" if answer == wanted else f"Returned {answer}; expected {wanted}{why}."
    if question.function == "occupancy":
        if math.isclose(answer, right.ratio, abs_tol=1e-6):
            return ""
        return f"Returned {answer:.4g}; expected {right.ratio:.4g}{why}."
    least = _loads(right.blocks * kernel["threads"], given["memory"])
    if answer == least:
        return ""
    return f"Returned {answer}; expected {least}, with {right.blocks} resident blocks."


def _loads(threads: int, memory: Numbers) -> int:
    if not threads:
        return 0
    # whole numbers, so that nobody fails for a rounding: bytes * ns / s
    a_second: int = memory["multiprocessors"] * threads * memory["load_bytes"] * 10**9
    under_way = int(memory["bytes_per_s"]) * int(memory["latency_ns"])
    return -(-under_way // a_second)
