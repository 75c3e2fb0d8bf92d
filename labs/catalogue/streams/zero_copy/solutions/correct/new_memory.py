# an index that is a tensor copies rows to new memory of the GPU, so they cross once
from given import scaled, seen_by_gpu


def prepare(rows, picked, width):
    return None


def run(state, table, which, out):
    scaled(seen_by_gpu(table)[which], out)
