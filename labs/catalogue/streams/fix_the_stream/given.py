"""What this lab gives you. Both functions work on the stream that is current.

`torch.cuda._sleep` keeps a stream busy for so many cycles of the GPU, here about 0.2
and 0.4 ms. It stands for a kernel that takes its time, so that what should have waited
and did not is wrong each time, and not once in a thousand runs.
"""

import torch

SLOW_CYCLES = 400_000


def produce(x):
    """Make 2 * x + 1, in new memory."""
    made = torch.empty_like(x)
    torch.cuda._sleep(SLOW_CYCLES)
    torch.mul(x, 2, out=made)
    made.add_(1)
    return made


def work(made, out):
    """Put made * made + made into `out`; reads `made` at once, and a while later."""
    torch.mul(made, made, out=out)
    torch.cuda._sleep(2 * SLOW_CYCLES)
    out.add_(made)
