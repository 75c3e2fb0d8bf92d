# the copy engine takes each row; the host has to know them all, and to ask for each
import torch
from given import scaled


def prepare(rows, picked, width):
    return torch.empty(picked, width, device="cuda")


def run(state, table, which, out):
    for row, number in enumerate(which.tolist()):
        state[row].copy_(table[number], non_blocking=True)
    scaled(state, out)
