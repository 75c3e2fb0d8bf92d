# one copy, since whole rows lie side by side; but it carries what nobody asked for
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
    rows = samples[first : first + wanted].to("cuda", non_blocking=True)
    here = rows[:, begin : begin + BLOCK * blocks].contiguous()
    loudest(here, state["gains"], state["result"])
    out.copy_(state["result"], non_blocking=True)
