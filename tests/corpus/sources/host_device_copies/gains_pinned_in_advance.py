# Gains go through page-locked memory that prepare asked for, on a stream of their own.
import torch
from given import BLOCK, loudest


def prepare(wanted, spare, blocks, skipped):
    return {
        "held": torch.empty(wanted, BLOCK * blocks, dtype=torch.int8, device="cuda"),
        "pinned": torch.empty(wanted, pin_memory=True),
        "gains": torch.empty(wanted, device="cuda"),
        "result": torch.empty(wanted, blocks, device="cuda"),
        "read": None,
    }


def run(state, samples, gains, first, begin, out):
    held, wanted = state["held"], state["held"].shape[0]
    if state["read"] is not None:
        # the call before may not have read what lies there
        state["read"].synchronize()
    state["pinned"].copy_(gains[first : first + wanted])
    state["gains"].copy_(state["pinned"], non_blocking=True)
    state["read"] = torch.cuda.current_stream().record_event()
    for i in range(wanted):
        piece = samples[first + i].narrow(0, begin, held.shape[1])
        held[i].copy_(piece, non_blocking=True)
    loudest(held, state["gains"], state["result"])
    out.copy_(state["result"], non_blocking=True)
