# Right, and what one writes first: the host picks the rows, and copies them.
from given import scaled


def prepare(rows, picked, width):
    return None


def run(state, table, which, out):
    wanted = table[which.cpu()]
    scaled(wanted.to("cuda"), out)
