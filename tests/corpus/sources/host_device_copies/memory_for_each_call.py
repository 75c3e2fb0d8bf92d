# New memory in each call, as `to` makes it, with pieces joined on the GPU.
import torch
from given import BLOCK, loudest


def prepare(wanted, spare, blocks, skipped):
    return blocks * BLOCK


def run(length, samples, gains, first, begin, out):
    wanted = out.shape[0]
    pieces = [
        samples[channel, begin : begin + length].to("cuda", non_blocking=True)
        for channel in range(first, first + wanted)
    ]
    result = torch.empty(out.shape, device="cuda")
    loudest(torch.stack(pieces), gains[first : first + wanted].cuda(), result)
    out.copy_(result, non_blocking=True)
