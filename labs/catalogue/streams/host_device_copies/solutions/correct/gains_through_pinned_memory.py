# the gains, too, go from page-locked memory: not a single copy makes the host wait
import torch
from given import BLOCK, loudest


def prepare(wanted, spare, blocks, skipped):
    here = torch.empty(wanted, BLOCK * blocks, dtype=torch.int8, device="cuda")
    return {
        "rows": [here[row] for row in range(wanted)],
        "samples": here,
        "staged": torch.empty(wanted, pin_memory=True),
        "gains": torch.empty(wanted, device="cuda"),
        "result": torch.empty(wanted, blocks, device="cuda"),
    }


def run(state, samples, gains, first, begin, out):
    wanted, length = state["samples"].shape
    for row, target in enumerate(state["rows"]):
        source = samples[first + row, begin : begin + length]
        target.copy_(source, non_blocking=True)
    state["staged"].copy_(gains[first : first + wanted])
    state["gains"].copy_(state["staged"], non_blocking=True)
    loudest(state["samples"], state["gains"], state["result"])
    out.copy_(state["result"], non_blocking=True)
