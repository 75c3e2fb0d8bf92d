# All batches as one tall matrix, and the division as a product with a reciprocal.
import torch


def prepare(steps, rows, features, outputs):
    return torch.empty(steps * rows, features, device="cuda")


def run(held, x, w, y, best):
    steps, rows, features = x.shape
    held.copy_(x.view(steps * rows, features), non_blocking=True)
    flat = y.view(steps * rows, -1)
    torch.mm(held, w, out=flat)
    torch.relu_(flat)
    largest = y.flatten(1).amax(1)
    safe = torch.where(largest > 0, largest, torch.ones_like(largest))
    y.mul_(safe.reciprocal().view(-1, 1, 1))
    best.copy_(largest)
