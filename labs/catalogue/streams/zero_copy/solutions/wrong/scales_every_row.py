# a kernel that is given the whole table reads all of it over the link
import torch
from given import seen_by_gpu


def prepare(rows, picked, width):
    return None


def run(state, table, which, out):
    seen = seen_by_gpu(table)
    largest = seen.abs().amax(dim=1, keepdim=True)
    largest.masked_fill_(largest == 0, 1.0)
    torch.div(seen[which], largest[which], out=out)
