"""What the GPU does with the samples. The lab is about getting them there and back."""

import torch

#: samples of one block
BLOCK = 256


def loudest(samples, gains, out):
    """Write the gain times the largest |sample| of each block.

    All are in the GPU's memory: samples int8 (rows, BLOCK * blocks), gains float32
    (rows,) and out float32 (rows, blocks).
    """
    blocks = samples.view(samples.shape[0], -1, BLOCK)
    high = blocks.amax(dim=2).to(torch.float32)
    low = blocks.amin(dim=2).to(torch.float32)
    # |-128| is no int8, so the sign goes after the conversion
    torch.mul(torch.maximum(high, low.neg()), gains.view(-1, 1), out=out)
