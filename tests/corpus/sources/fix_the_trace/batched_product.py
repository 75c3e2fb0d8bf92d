# A batched product with weights that are expanded, and the division in place by a mask.
import torch


def prepare(steps, rows, features, outputs):
    return {
        "x": torch.empty(steps, rows, features, device="cuda"),
        "one": torch.ones((), device="cuda"),
    }


def run(state, x, w, y, best):
    state["x"].copy_(x, non_blocking=True)
    torch.bmm(state["x"], w.expand(len(x), -1, -1), out=y)
    y.relu_()
    largest = y.view(len(x), -1).max(dim=1).values
    y /= torch.where(largest == 0, state["one"], largest).view(-1, 1, 1)
    best.copy_(largest)
