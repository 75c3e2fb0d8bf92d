import torch


def prepare(steps, rows, features, outputs):
    return None


def run(state, x, w, y, best):
    made = torch.relu(x.cuda() @ w).cpu()
    largest = made.amax(dim=(1, 2))
    best.copy_(largest)
    y.copy_(made / torch.where(largest > 0, largest, 1)[:, None, None])
