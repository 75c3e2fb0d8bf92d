"""Predict how full a multiprocessor gets. Fill in the three functions.

They are called with plain numbers, such as

    resident_blocks(
        {"threads": 256, "registers": 40, "shared_bytes": 4096},
        {"max_warps": 64, "max_blocks": 32, "shared_bytes": 233472, "registers": 65536,
         "reserved_shared_bytes": 1024, "shared_unit_bytes": 128,
         "register_unit": 256, "parts": 4},
    )
"""

import math

WARP = 32


def resident_blocks(kernel, multiprocessor):
    """Count the blocks that fit at once; registers and shared memory count, too."""
    warps = math.ceil(kernel["threads"] / WARP)
    return multiprocessor["max_warps"] // warps


def occupancy(kernel, multiprocessor):
    """Give the warps held, as a share of the most."""
    return 1.0


def loads_in_flight(kernel, multiprocessor, memory):
    """Say how many loads each thread must have under way."""
    return 1
