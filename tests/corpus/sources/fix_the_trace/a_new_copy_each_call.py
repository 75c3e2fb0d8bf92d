# The batch is a new tensor in each call, and the result goes by pinned memory and an event.
import torch


def prepare(steps, rows, features, outputs):
    return torch.empty(steps, pin_memory=True), torch.cuda.Event()


def run(state, x, w, y, best):
    landed, arrived = state
    here = x.to("cuda", non_blocking=True)
    product = (here @ w).clamp(min=0)
    largest = product.amax((1, 2))
    landed.copy_(largest, non_blocking=True)
    arrived.record()
    torch.div(product, largest.masked_fill(largest == 0, 1)[:, None, None], out=y)
    arrived.synchronize()
    best.copy_(landed)
