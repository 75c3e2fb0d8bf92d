# everything crosses the link, though a part of it is asked for
import torch
from given import BLOCK, loudest


def prepare(wanted, spare, blocks, skipped):
    length = BLOCK * (blocks + skipped)
    return {
        "samples": torch.empty(wanted + spare, length, dtype=torch.int8, device="cuda"),
        "gains": torch.empty(wanted + spare, device="cuda"),
        "result": torch.empty(wanted, blocks, device="cuda"),
    }


def run(state, samples, gains, first, begin, out):
    wanted, blocks = out.shape
    everything = state["samples"]
    state["gains"].copy_(gains)
    everything.copy_(samples, non_blocking=True)
    here = everything[first : first + wanted, begin : begin + BLOCK * blocks]
    factors = state["gains"][first : first + wanted]
    loudest(here.contiguous(), factors, state["result"])
    out.copy_(state["result"], non_blocking=True)
