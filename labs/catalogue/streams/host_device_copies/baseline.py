# Right, and what one writes first: everything there, everything back.
import torch
from given import BLOCK, loudest


def prepare(wanted, spare, blocks, skipped):
    return {"wanted": wanted, "length": BLOCK * blocks}


def run(state, samples, gains, first, begin, out):
    wanted, length = state["wanted"], state["length"]
    everything = samples.to("cuda")
    here = everything[first : first + wanted, begin : begin + length].contiguous()
    result = torch.empty(out.shape, device="cuda")
    loudest(here, gains.to("cuda")[first : first + wanted], result)
    out.copy_(result.cpu())
