# four bytes of each row at a time: the link carries a sector of 32 for them
import torch
from given import scaled, seen_by_gpu


def prepare(rows, picked, width):
    return torch.empty(picked, width, device="cuda")


def run(state, table, which, out):
    seen = seen_by_gpu(table)
    for column in range(table.shape[1]):
        state[:, column].copy_(seen[:, column].index_select(0, which))
    scaled(state, out)
