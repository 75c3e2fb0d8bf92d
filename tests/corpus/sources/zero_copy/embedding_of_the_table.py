# The table is an embedding's weight, as the GPU sees it, and rows are scaled by normalize.
import torch
from given import seen_by_gpu
from torch.nn import functional


def prepare(rows, picked, width):
    return torch.finfo(torch.float32).tiny


def run(tiny, table, which, out):
    rows = functional.embedding(which, seen_by_gpu(table))
    # the largest size is the norm of infinite order, and zeros are divided by eps
    functional.normalize(rows, p=float("inf"), dim=1, eps=tiny, out=out)
