# A linear layer, called as a function of other weights, and normalize of infinite order.
import torch
from torch.nn import functional


def prepare(steps, rows, features, outputs):
    with torch.device("meta"):
        layer = torch.nn.Linear(features, outputs, bias=False)
    return torch.nn.Sequential(layer, torch.nn.ReLU())


@torch.no_grad()
def run(layers, x, w, y, best):
    here = x.cuda(non_blocking=True)
    found = torch.func.functional_call(layers, {"0.weight": w.t()}, (here,))
    flat = found.flatten(1)
    largest = torch.linalg.vector_norm(flat, float("inf"), dim=1)
    functional.normalize(flat, p=torch.inf, dim=1, eps=0.5, out=y.view(flat.shape))
    best.copy_(largest)
