"""What a launch asks, checked, and its arguments as they lie in memory."""

from __future__ import annotations

import math
import struct
from collections.abc import Sequence

import numpy as np

from warpbook_labs.cases.launch_limits import MOST_THREADS, refusal
from warpbook_labs.engines.interpreter.ptx.arithmetic.lanes import Dim
from warpbook_labs.engines.interpreter.ptx.memory.spaces import Buffer
from warpbook_labs.engines.interpreter.ptx.text.errors import BadLaunch, TooLarge
from warpbook_labs.engines.interpreter.ptx.text.program import Linked, Variable

#: that every GPU with clusters has room for
_MOST_OF_CLUSTER = 8

Argument = Buffer | np.generic | int | float


def checked(linked: Linked, grid: Dim, block: Dim) -> tuple[int, int]:
    """Give the threads of a block, and the blocks.

    Raises:
        BadLaunch: no GPU launches them.
        TooLarge: they are too many for the CPU.
    """
    words = refusal(grid, block) or _beyond_limits(linked, grid, block)
    if words:
        raise BadLaunch(words)
    threads, blocks = (side[0] * side[1] * side[2] for side in (block, grid))
    if threads * blocks > MOST_THREADS:
        raise TooLarge(
            f"{threads * blocks:,} threads are too many to run without a GPU."
        )
    return threads, blocks


def _beyond_limits(linked: Linked, grid: Dim, block: Dim) -> str:
    """Say which limit of its own a kernel is launched beyond; nothing if none."""
    threads = math.prod(block)
    most = math.prod(linked.limits.get("maxntid", (threads,)))
    if threads > most:
        return (
            f"A block of {block} has {threads:,} threads; `{linked.name}` promises the "
            f"compiler {most:,} at most (`__launch_bounds__`)."
        )
    cluster = linked.limits.get("reqnctapercluster", (1, 1, 1))
    if math.prod(cluster) > _MOST_OF_CLUSTER:
        return f"A cluster of {cluster} has more than {_MOST_OF_CLUSTER} blocks."
    if any(side % part for side, part in zip(grid, cluster, strict=True)):
        return f"A grid of {grid} can't be launched in clusters of {cluster}."
    return ""


def packed(linked: Linked, arguments: Sequence[Argument]) -> dict[str, bytes]:
    """Give what each parameter of a kernel holds.

    Raises:
        BadLaunch: they do not fit.
    """
    if len(arguments) != len(linked.parameters):
        raise BadLaunch(
            f"`{linked.name}` takes {len(linked.parameters)} arguments; "
            f"{len(arguments)} were given."
        )
    packed_bytes = {}
    for variable, argument in zip(linked.parameters, arguments, strict=True):
        packed_bytes[variable.name] = _bytes(variable, argument)
    return packed_bytes


def _bytes(variable: Variable, argument: Argument) -> bytes:
    size = variable.size_bytes
    if isinstance(argument, Buffer):
        held = struct.pack("<Q", argument.address)
    elif isinstance(argument, np.generic):
        held = argument.tobytes()
    elif variable.type in ("f32", "f64"):
        held = struct.pack("<f" if variable.type == "f32" else "<d", argument)
    elif isinstance(argument, int):
        try:
            held = argument.to_bytes(size, "little", signed=argument < 0)
        except OverflowError:
            raise BadLaunch(f"{argument} does not fit into {size} bytes.") from None
    else:
        held = b""
    if len(held) != size:
        what = f"buffer `{argument.name}`" if isinstance(argument, Buffer) else argument
        raise BadLaunch(
            f"The argument ({what}) does not fit a parameter of {size} bytes, "
            f".{variable.type}."
        )
    return held
