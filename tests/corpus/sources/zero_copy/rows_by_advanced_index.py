# The rows are gathered into memory that is kept, by an index and copy_, then scaled.
import torch
from given import scaled, seen_by_gpu


def prepare(rows, picked, width):
    return torch.zeros((picked, width), device="cuda")


def run(held, table, which, out):
    seen = seen_by_gpu(table)
    held.copy_(seen[which, :])
    scaled(held, out)
