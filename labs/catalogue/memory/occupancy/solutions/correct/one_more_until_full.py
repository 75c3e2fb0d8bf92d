# blocks are put in one after the other, until something runs out
from math import ceil


def fits(blocks, kernel, room):
    warps = ceil(kernel["threads"] / 32)
    unit = room["register_unit"]
    registers = ceil(kernel["registers"] * 32 / unit) * unit
    if registers * ceil(warps / room["parts"]) * room["parts"] > room["registers"]:
        return False
    shared = kernel["shared_bytes"] + room["reserved_shared_bytes"]
    shared = ceil(shared / room["shared_unit_bytes"]) * room["shared_unit_bytes"]
    of_a_part = room["registers"] // room["parts"] // registers
    return (
        blocks <= room["max_blocks"]
        and blocks * warps <= room["max_warps"]
        and blocks * warps <= of_a_part * room["parts"]
        and blocks * shared <= room["shared_bytes"]
    )


def resident_blocks(kernel, multiprocessor):
    blocks = 0
    while fits(blocks + 1, kernel, multiprocessor):
        blocks += 1
    return blocks


def occupancy(kernel, multiprocessor):
    warps = resident_blocks(kernel, multiprocessor) * ceil(kernel["threads"] / 32)
    return warps / multiprocessor["max_warps"]


def loads_in_flight(kernel, multiprocessor, memory):
    threads = resident_blocks(kernel, multiprocessor) * kernel["threads"]
    if threads == 0:
        return 0
    a_second = memory["bytes_per_s"] / memory["multiprocessors"]
    return ceil(a_second * memory["latency_ns"] / 1e9 / threads / memory["load_bytes"])
