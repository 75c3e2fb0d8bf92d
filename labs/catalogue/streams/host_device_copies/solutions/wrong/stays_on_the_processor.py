# nothing crosses the link, and the GPU is idle
from given import BLOCK, loudest


def prepare(wanted, spare, blocks, skipped):
    return BLOCK * blocks


def run(length, samples, gains, first, begin, out):
    wanted = out.shape[0]
    piece = samples[first : first + wanted, begin : begin + length].contiguous()
    loudest(piece, gains[first : first + wanted], out)
