# torch.compile with the backend that compiles nothing, and max in place of clamp and amax.
import torch


@torch.compile(backend="eager", fullgraph=True)
def finished(product, y):
    steps = product.shape[0]
    largest, _ = product.view(steps, -1).max(1)
    largest = torch.maximum(largest, largest.new_zeros(()))
    # 1 / 0 is infinite, and becomes 0, as all is then
    factor = torch.nan_to_num(largest.reciprocal(), posinf=0.0)
    torch.mul(product.clamp_min_(0), factor.view(-1, 1, 1), out=y)
    return largest


def prepare(steps, rows, features, outputs):
    return torch.empty((steps * rows, features), device="cuda"), (steps, rows, outputs)


def run(state, x, w, y, best):
    held, shape = state
    held.copy_(x.view_as(held), non_blocking=True)
    best[:] = finished((held @ w).view(shape), y)
