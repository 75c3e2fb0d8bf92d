# no memory beside the output: rows are scaled where they arrived
import torch
from given import scaled, seen_by_gpu


def prepare(rows, picked, width):
    return None


def run(state, table, which, out):
    torch.index_select(seen_by_gpu(table), 0, which, out=out)
    scaled(out, out)
