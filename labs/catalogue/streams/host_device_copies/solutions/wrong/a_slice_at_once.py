# the slice has gaps, so PyTorch first gathers it in memory that is not page-locked
import torch
from given import BLOCK, loudest


def prepare(wanted, spare, blocks, skipped):
    return {
        "gains": torch.empty(wanted, device="cuda"),
        "result": torch.empty(wanted, blocks, device="cuda"),
    }


def run(state, samples, gains, first, begin, out):
    wanted, blocks = out.shape
    state["gains"].copy_(gains[first : first + wanted])
    piece = samples[first : first + wanted, begin : begin + BLOCK * blocks]
    here = piece.to("cuda", non_blocking=True)
    loudest(here, state["gains"], state["result"])
    out.copy_(state["result"], non_blocking=True)
