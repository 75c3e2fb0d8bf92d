# NumPy asks of all numbers of blocks at once which of them fit, and counts those.
import numpy as np


def resident_blocks(kernel, multiprocessor):
    room = multiprocessor
    blocks = np.arange(1, room["max_blocks"] + 1, dtype=np.int64)
    warps = blocks * -(-kernel["threads"] // 32)
    a_warp = (
        np.ceil(kernel["registers"] * 32 / room["register_unit"])
        * room["register_unit"]
    )
    in_a_part = np.ceil(warps / room["parts"])
    shared_unit = room["shared_unit_bytes"]
    shared = kernel["shared_bytes"] + room["reserved_shared_bytes"]
    fits = np.stack(
        [
            warps <= room["max_warps"],
            in_a_part * a_warp <= room["registers"] // room["parts"],
            blocks * (np.ceil(shared / shared_unit) * shared_unit)
            <= room["shared_bytes"],
        ]
    )
    return int(fits.all(axis=0).sum())


def occupancy(kernel, multiprocessor):
    warps = np.ceil(kernel["threads"] / 32) * resident_blocks(kernel, multiprocessor)
    return float(np.divide(warps, multiprocessor["max_warps"]))


def loads_in_flight(kernel, multiprocessor, memory):
    threads = resident_blocks(kernel, multiprocessor) * kernel["threads"]
    if not threads:
        return 0
    under_way = memory["bytes_per_s"] * memory["latency_ns"] / 1e9
    of_each = threads * memory["multiprocessors"] * memory["load_bytes"]
    return int(np.ceil(np.float64(under_way) / of_each))
