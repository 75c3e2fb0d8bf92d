"""Arguments of kernels, as the driver wants them in memory."""

from __future__ import annotations

import contextlib

import numpy as np
from numpy.typing import NDArray

from warpbook_labs.cases import execution
from warpbook_labs.gpu.errors import BadArguments


def packed(
    kernel: str,
    number: int,
    argument: execution.Argument,
    size: int,
    addresses: dict[str, int],
) -> NDArray[np.uint8]:
    """Write an argument as it lies in memory.

    Args:
        number: of the parameter, from 1.
        size: bytes of the parameter.

    Raises:
        BadArguments: it does not fit.
    """
    if isinstance(argument, execution.BufferArgument):
        whole, what = addresses[argument.name], f"the address of `{argument.name}`"
        if size != 8:
            raise BadArguments(
                f"`{kernel}`: parameter {number} has {size} bytes, and is given "
                f"{what}, which has 8."
            )
        return np.frombuffer(whole.to_bytes(8, "little"), np.uint8)
    if isinstance(argument, execution.FloatArgument):
        if size not in (2, 4, 8):
            raise BadArguments(
                f"`{kernel}`: parameter {number} has {size} bytes: no floating number."
            )
        return np.array([argument.value], f"<f{size}").view(np.uint8)
    if isinstance(argument, execution.IntegerArgument):
        with contextlib.suppress(OverflowError):
            signed = argument.value < 0
            held = argument.value.to_bytes(size, "little", signed=signed)
            return np.frombuffer(held, np.uint8)
        raise BadArguments(
            f"`{kernel}`: parameter {number} has {size} bytes, too few for "
            f"{argument.value:,}."
        )
    if len(argument.data) != size:
        raise BadArguments(
            f"`{kernel}`: parameter {number} has {size} bytes, and is given a "
            f"number of {len(argument.data)}."
        )
    return np.frombuffer(argument.data, np.uint8)
