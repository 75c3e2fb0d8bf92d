# what crosses is as little as it can be, and the GPU does nothing but wait
from given import scaled


def prepare(rows, picked, width):
    return None


def run(state, table, which, out):
    wanted = table[which.cpu()]
    scaled(wanted, wanted)
    out.copy_(wanted)
