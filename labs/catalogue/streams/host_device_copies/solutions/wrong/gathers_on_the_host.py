# one copy of just what is needed, but first the host moves every byte itself
import torch
from given import BLOCK, loudest


def prepare(wanted, spare, blocks, skipped):
    shape = wanted, BLOCK * blocks
    return {
        "staged": torch.empty(shape, dtype=torch.int8, pin_memory=True),
        "samples": torch.empty(shape, dtype=torch.int8, device="cuda"),
        "gains": torch.empty(wanted, device="cuda"),
        "result": torch.empty(wanted, blocks, device="cuda"),
    }


def run(state, samples, gains, first, begin, out):
    here = state["samples"]
    wanted, length = here.shape
    state["gains"].copy_(gains[first : first + wanted])
    piece = samples[first : first + wanted, begin : begin + length]
    state["staged"].copy_(piece)
    here.copy_(state["staged"], non_blocking=True)
    loudest(here, state["gains"], state["result"])
    out.copy_(state["result"], non_blocking=True)
