# A class for what is left of a multiprocessor, from which block after block is taken.
from dataclasses import dataclass


def rounded(number, unit):
    return number + -number % unit


@dataclass
class Left:
    warps: int
    blocks: int
    shared: int
    places: int  # for warps, by their registers

    def take(self, warps, shared):
        if (
            self.warps < warps
            or self.places < warps
            or self.shared < shared
            or not self.blocks
        ):
            return False
        self.warps -= warps
        self.places -= warps
        self.shared -= shared
        self.blocks -= 1
        return True


def resident_blocks(kernel, multiprocessor):
    of = multiprocessor
    warps = rounded(kernel["threads"], 32) // 32
    registers = rounded(kernel["registers"] * 32, of["register_unit"])
    if rounded(warps, of["parts"]) * registers > of["registers"]:
        return 0
    shared = rounded(
        kernel["shared_bytes"] + of["reserved_shared_bytes"], of["shared_unit_bytes"]
    )
    places = of["registers"] // of["parts"] // registers * of["parts"]
    left = Left(of["max_warps"], of["max_blocks"], of["shared_bytes"], places)
    count = 0
    while left.take(warps, shared):
        count += 1
    return count


def occupancy(kernel, multiprocessor):
    warps = rounded(kernel["threads"], 32) // 32
    return warps * resident_blocks(kernel, multiprocessor) / multiprocessor["max_warps"]


def loads_in_flight(kernel, multiprocessor, memory):
    blocks = resident_blocks(kernel, multiprocessor)
    each = (
        blocks
        * kernel["threads"]
        * memory["load_bytes"]
        * memory["multiprocessors"]
        * 10**9
    )
    under_way = int(memory["bytes_per_s"]) * memory["latency_ns"]
    return -(-under_way // each) if blocks else 0
