# many small copies, each of which costs as much to ask for as a large one
import torch
from given import BLOCK, loudest


def prepare(wanted, spare, blocks, skipped):
    return {
        "samples": torch.empty(wanted, BLOCK * blocks, dtype=torch.int8, device="cuda"),
        "gains": torch.empty(wanted, device="cuda"),
        "result": torch.empty(wanted, blocks, device="cuda"),
    }


def run(state, samples, gains, first, begin, out):
    here = state["samples"]
    wanted, length = here.shape
    # a few pieces for each row are enough to show it
    step = max(BLOCK, length // 16)
    state["gains"].copy_(gains[first : first + wanted])
    for row in range(wanted):
        for at in range(0, length, step):
            piece = samples[first + row, begin + at : begin + min(at + step, length)]
            here[row, at : at + step].copy_(piece, non_blocking=True)
    loudest(here, state["gains"], state["result"])
    out.copy_(state["result"], non_blocking=True)
