# The number of blocks is found by bisection over what would still fit.
import bisect
import math


def fits(kernel, room, blocks):
    warps = -(-kernel["threads"] // 32)
    unit, parts = room["register_unit"], room["parts"]
    a_warp = math.ceil(kernel["registers"] * 32 / unit) * unit
    # a block alone must find room for its warps in every part
    alone = math.ceil(warps / parts) * parts * a_warp <= room["registers"]
    by_parts = room["registers"] // parts // a_warp * parts
    shared_unit = room["shared_unit_bytes"]
    wanted = kernel["shared_bytes"] + room["reserved_shared_bytes"]
    shared = math.ceil(wanted / shared_unit) * shared_unit
    return (
        alone
        and blocks <= room["max_blocks"]
        and blocks * warps <= min(room["max_warps"], by_parts)
        and blocks * shared <= room["shared_bytes"]
    )


def resident_blocks(kernel, multiprocessor):
    counts = range(1, multiprocessor["max_blocks"] + 2)
    return bisect.bisect_left(
        counts, True, key=lambda n: not fits(kernel, multiprocessor, n)
    )


def occupancy(kernel, multiprocessor):
    warps = (kernel["threads"] + 31) // 32 * resident_blocks(kernel, multiprocessor)
    return warps / float(multiprocessor["max_warps"])


def loads_in_flight(kernel, multiprocessor, memory):
    threads = kernel["threads"] * resident_blocks(kernel, multiprocessor)
    if threads == 0:
        return 0
    per_ns = memory["bytes_per_s"] * memory["latency_ns"]
    whole, rest = divmod(
        per_ns, 10**9 * threads * memory["multiprocessors"] * memory["load_bytes"]
    )
    return int(whole) + bool(rest)
