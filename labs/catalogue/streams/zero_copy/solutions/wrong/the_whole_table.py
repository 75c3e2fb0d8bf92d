# nobody waits, but every row crosses the link, for the few that are wanted
from given import scaled


def prepare(rows, picked, width):
    return None


def run(state, table, which, out):
    here = table.to("cuda", non_blocking=True)
    scaled(here.index_select(0, which), out)
