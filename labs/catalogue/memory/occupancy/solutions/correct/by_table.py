# every limit in one table, in warps
def per_multiprocessor(kernel, room):
    warps = -(-kernel["threads"] // 32)
    unit, parts = room["register_unit"], room["parts"]
    registers = -(-kernel["registers"] * 32 // unit) * unit
    rounded_warps = -(-warps // parts) * parts
    shared = kernel["shared_bytes"] + room["reserved_shared_bytes"]
    shared = -(-shared // room["shared_unit_bytes"]) * room["shared_unit_bytes"]
    limits = {
        "warps": room["max_warps"] // warps,
        "blocks": room["max_blocks"],
        "registers": (room["registers"] // parts // registers) * parts // warps,
        "shared": room["shared_bytes"] // max(shared, 1),
    }
    if registers * rounded_warps > room["registers"]:
        limits["launch"] = 0
    return min(limits.values()), warps


def resident_blocks(kernel, multiprocessor):
    return per_multiprocessor(kernel, multiprocessor)[0]


def occupancy(kernel, multiprocessor):
    blocks, warps = per_multiprocessor(kernel, multiprocessor)
    return blocks * warps / multiprocessor["max_warps"]


def loads_in_flight(kernel, multiprocessor, memory):
    blocks, _ = per_multiprocessor(kernel, multiprocessor)
    threads = blocks * kernel["threads"] * memory["multiprocessors"]
    if not threads:
        return 0
    in_flight = int(memory["bytes_per_s"]) * memory["latency_ns"]
    return -(-in_flight // (threads * memory["load_bytes"] * 10**9))
