import torch


def prepare(steps, rows, features, outputs):
    landed = torch.empty(steps, pin_memory=True)
    return torch.empty(steps, rows, features, device="cuda"), landed


def run(state, x, w, y, best):
    batches, landed = state
    batches.copy_(x, non_blocking=True)
    torch.matmul(batches, w, out=y)
    y.clamp_(min=0)
    largest = y.amax(dim=(1, 2))
    landed.copy_(largest, non_blocking=True)
    # goes on meanwhile; of whole numbers, what is above zero is 1 at least
    y.div_(largest.clamp(min=1)[:, None, None])
    torch.cuda.current_stream().synchronize()
    best.copy_(landed)
