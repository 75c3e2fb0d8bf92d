"""How full a multiprocessor gets, and how busy its memory."""

import math

WARP = 32


def _up(number, unit):
    return math.ceil(number / unit) * unit


def resident_blocks(kernel, multiprocessor):
    warps = math.ceil(kernel["threads"] / WARP)
    # registers are handed out to a whole warp, in units, from four separate files
    a_warp = _up(kernel["registers"] * WARP, multiprocessor["register_unit"])
    parts = multiprocessor["parts"]
    if a_warp * _up(warps, parts) > multiprocessor["registers"]:
        return 0
    warps_by_registers = parts * (multiprocessor["registers"] // parts // a_warp)
    # CUDA takes some shared memory of each block for itself
    shared = kernel["shared_bytes"] + multiprocessor["reserved_shared_bytes"]
    shared = _up(shared, multiprocessor["shared_unit_bytes"])
    return min(
        multiprocessor["max_warps"] // warps,
        multiprocessor["max_blocks"],
        warps_by_registers // warps,
        multiprocessor["shared_bytes"] // shared if shared else 10**9,
    )


def occupancy(kernel, multiprocessor):
    warps = math.ceil(kernel["threads"] / WARP)
    held = resident_blocks(kernel, multiprocessor) * warps
    return held / multiprocessor["max_warps"]


def loads_in_flight(kernel, multiprocessor, memory):
    threads = resident_blocks(kernel, multiprocessor) * kernel["threads"]
    if threads == 0:
        return 0
    # Little's law: what is under way = how much comes out * how long it takes
    under_way = memory["bytes_per_s"] * memory["latency_ns"] * 1e-9
    of_each = memory["multiprocessors"] * threads * memory["load_bytes"]
    return math.ceil(under_way / of_each)
