# Warps are put one after the other into the part that has most registers left, until one fits nowhere.
import heapq
import itertools


def rounded_up(number, unit):
    return number + -number % unit


def taken_in(kernel, room):
    """Yield the warps that are resident after each block that fits."""
    warps = len(range(0, kernel["threads"], 32))
    a_warp = rounded_up(32 * kernel["registers"], room["register_unit"])
    shared = kernel["shared_bytes"] + room["reserved_shared_bytes"]
    shared = rounded_up(shared, room["shared_unit_bytes"])
    # the largest comes first from a heap of negative numbers
    free = [-(room["registers"] // room["parts"])] * room["parts"]
    left = room["shared_bytes"]
    for blocks in itertools.count(1):
        left -= shared
        if (
            blocks > room["max_blocks"]
            or blocks * warps > room["max_warps"]
            or left < 0
        ):
            return
        for _ in range(warps):
            if -free[0] < a_warp:
                return
            heapq.heapreplace(free, free[0] + a_warp)
        yield blocks * warps


def resident_blocks(kernel, multiprocessor):
    return sum(1 for _ in taken_in(kernel, multiprocessor))


def occupancy(kernel, multiprocessor):
    warps = max(taken_in(kernel, multiprocessor), default=0)
    return warps / multiprocessor["max_warps"]


def loads_in_flight(kernel, multiprocessor, memory):
    threads = resident_blocks(kernel, multiprocessor) * kernel["threads"]
    bytes_of_all = threads * memory["load_bytes"] * memory["multiprocessors"]
    wanted = memory["bytes_per_s"] * memory["latency_ns"]
    # in nano-bytes, so that nothing is rounded
    return int(-(-wanted // (bytes_of_all * 10**9))) if threads else 0
