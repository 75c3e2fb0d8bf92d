# allocates as it goes, and works on each row as soon as it is there
import torch
from given import BLOCK, loudest


def prepare(wanted, spare, blocks, skipped):
    return BLOCK * blocks


def run(length, samples, gains, first, begin, out):
    wanted, blocks = out.shape
    factors = gains[first : first + wanted].to("cuda")
    result = torch.empty(wanted, blocks, device="cuda")
    for row in range(wanted):
        piece = samples[first + row, begin : begin + length]
        here = piece.to("cuda", non_blocking=True)
        loudest(here.view(1, length), factors[row : row + 1], result[row : row + 1])
    out.copy_(result, non_blocking=True)
