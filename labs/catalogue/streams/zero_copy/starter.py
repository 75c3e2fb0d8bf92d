from given import scaled


def prepare(rows, picked, width):
    # Called once, and not timed. What you return here is handed to run.
    return None


def run(state, table, which, out):
    # The numbers are right. Who waits for whom, and who moves every byte?
    wanted = table[which.cpu()]
    scaled(wanted.to("cuda"), out)
