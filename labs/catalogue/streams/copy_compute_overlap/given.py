"""The work on one chunk. The lab is about feeding it."""

import torch

#: staging buffers that the GPU has room for, in each direction
SLOTS = 3


def work(values, weights, out):
    """Write what is positive of values @ weights; all three are on the GPU."""
    torch.mm(values, weights, out=out)
    out.clamp_(min=0)
