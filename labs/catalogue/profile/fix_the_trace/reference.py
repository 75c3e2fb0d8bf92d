import torch


def prepare(steps, rows, features, outputs):
    return torch.empty(steps, rows, features, device="cuda")


def run(state, x, w, y, best):
    # pinned memory: the host does not wait
    state.copy_(x, non_blocking=True)
    torch.matmul(state, w, out=y)
    y.clamp_(min=0)
    largest = y.amax(dim=(1, 2))
    # where nothing is above zero, all is zero already
    y.div_(torch.where(largest > 0, largest, 1)[:, None, None])
    # to ordinary memory: the host waits, for the first and last time
    best.copy_(largest)
