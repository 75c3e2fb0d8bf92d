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
    # gains are few bytes of ordinary memory: the host waits, for almost nothing
    state["gains"].copy_(gains[first : first + wanted])
    # a row's piece is contiguous, so it goes as it lies
    for row in range(wanted):
        here[row].copy_(samples[first + row, begin : begin + length], non_blocking=True)
    loudest(here, state["gains"], state["result"])
    out.copy_(state["result"], non_blocking=True)
