import torch
from given import BLOCK, loudest


def prepare(wanted, spare, blocks, skipped):
    # Called once, and not timed. What you return here is handed to run.
    return {"wanted": wanted, "length": BLOCK * blocks}


def run(state, samples, gains, first, begin, out):
    wanted, length = state["wanted"], state["length"]
    # The numbers are right. How many bytes cross the link, and how many are needed?
    everything = samples.to("cuda")
    here = everything[first : first + wanted, begin : begin + length].contiguous()
    result = torch.empty(out.shape, device="cuda")
    loudest(here, gains.to("cuda")[first : first + wanted], result)
    # Where does .cpu() put it?
    out.copy_(result.cpu())
