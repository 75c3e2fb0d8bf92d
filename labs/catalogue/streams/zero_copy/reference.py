import torch
from given import scaled, seen_by_gpu


def prepare(rows, picked, width):
    return torch.empty(picked, width, device="cuda")


def run(state, table, which, out):
    # one kernel reads the rows over the link, and then they are here
    torch.index_select(seen_by_gpu(table), 0, which, out=state)
    scaled(state, out)
