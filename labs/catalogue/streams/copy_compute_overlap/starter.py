import torch
from given import work


def prepare(chunks, rows, width):
    # Called once, and not timed. What you return here is handed to run.
    return {
        "arrived": torch.empty(rows, width, device="cuda"),
        "computed": torch.empty(rows, width, device="cuda"),
    }


def run(state, source, weights, out):
    arrived, computed = state["arrived"], state["computed"]
    rows = arrived.shape[0]
    # The numbers are right, but one stream does one thing after the other.
    for at in range(0, source.shape[0], rows):
        arrived.copy_(source[at : at + rows], non_blocking=True)
        work(arrived, weights, computed)
        out[at : at + rows].copy_(computed, non_blocking=True)
