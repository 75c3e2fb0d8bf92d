# The table is indexed as the GPU sees it: one kernel gathers, another scales.
from given import scaled, seen_by_gpu


def prepare(rows, picked, width):
    return None


def run(state, table, which, out):
    wanted = seen_by_gpu(table)[which]
    scaled(wanted, out)
