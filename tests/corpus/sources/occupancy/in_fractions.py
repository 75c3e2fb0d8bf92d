# Whole numbers by Fraction and floor, and the limits as a dictionary whose least is taken.
from fractions import Fraction
from math import ceil, floor


def limits(kernel, room):
    warps = ceil(Fraction(kernel["threads"], 32))
    unit = room["register_unit"]
    of_warp = ceil(Fraction(32 * kernel["registers"], unit)) * unit
    of_part = room["registers"] // room["parts"]
    shared = kernel["shared_bytes"] + room["reserved_shared_bytes"]
    shared = (
        ceil(Fraction(shared, room["shared_unit_bytes"])) * room["shared_unit_bytes"]
    )
    return {
        "warps": floor(Fraction(room["max_warps"], warps)),
        "blocks": room["max_blocks"],
        "registers": floor(Fraction(of_part // of_warp * room["parts"], warps)),
        "shared": room["shared_bytes"] // shared if shared else room["max_blocks"],
    }


def fits(kernel, room):
    """A block's registers are handed out as if each part had as many of its warps."""
    unit, parts = room["register_unit"], room["parts"]
    of_warp = -(-32 * kernel["registers"] // unit) * unit
    warps = -(-kernel["threads"] // 32)
    return of_warp * (-(-warps // parts) * parts) <= room["registers"]


def resident_blocks(kernel, multiprocessor):
    if not fits(kernel, multiprocessor):
        return 0
    return min(limits(kernel, multiprocessor).values())


def occupancy(kernel, multiprocessor):
    warps = ceil(Fraction(kernel["threads"], 32)) * resident_blocks(
        kernel, multiprocessor
    )
    return float(Fraction(warps, multiprocessor["max_warps"]))


def loads_in_flight(kernel, multiprocessor, memory):
    threads = resident_blocks(kernel, multiprocessor) * kernel["threads"]
    if not threads:
        return 0
    wanted = Fraction(memory["bytes_per_s"]) * Fraction(memory["latency_ns"]) / 10**9
    return ceil(wanted / (threads * memory["multiprocessors"] * memory["load_bytes"]))
