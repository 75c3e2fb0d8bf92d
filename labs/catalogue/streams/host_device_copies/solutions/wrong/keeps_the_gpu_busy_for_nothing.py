# the host moves every byte itself, beside half a second of sleep that looks short
import torch
from given import BLOCK, loudest


def prepare(wanted, spare, blocks, skipped):
    shape = wanted, BLOCK * blocks
    return {
        "staged": torch.empty(shape, dtype=torch.int8, pin_memory=True),
        "samples": torch.empty(shape, dtype=torch.int8, device="cuda"),
        "gains": torch.empty(wanted, device="cuda"),
        "result": torch.empty(wanted, blocks, device="cuda"),
        "side": torch.cuda.Stream(),
    }


def run(state, samples, gains, first, begin, out):
    with torch.cuda.stream(state["side"]):
        torch.cuda._sleep(1_000_000_000)
    here = state["samples"]
    wanted, length = here.shape
    # nothing waits, or it would wait for the sleep
    state["gains"].copy_(gains[first : first + wanted], non_blocking=True)
    state["staged"].copy_(samples[first : first + wanted, begin : begin + length])
    here.copy_(state["staged"], non_blocking=True)
    loudest(here, state["gains"], state["result"])
    out.copy_(state["result"], non_blocking=True)
