# All pieces are asked for by one foreach copy, and all gains come along, to be cut on the GPU.
import torch
from given import BLOCK, loudest


def prepare(wanted, spare, blocks, skipped):
    def new(*shape, **how):
        return torch.empty(shape, device="cuda", **how)

    return (
        new(wanted, blocks * BLOCK, dtype=torch.int8).unbind(),
        new(wanted + spare),
        new(wanted, blocks),
    )


def run(state, samples, gains, first, begin, out):
    rows, every, result = state
    every.copy_(gains)
    length = rows[0].numel()
    pieces = [row[begin : begin + length] for row in samples[first:].unbind()]
    torch._foreach_copy_(list(rows), pieces[: len(rows)], non_blocking=True)
    loudest(rows[0]._base, every.narrow(0, first, len(rows)), result)
    out.copy_(result, non_blocking=True)
