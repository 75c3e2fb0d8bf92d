"""Choose what to recompute. Fill in the three functions.

A block is a dict of whole numbers:

    {"input_mib": 16, "saved_mib": 112, "gflop": 80, "tail_gflop": 30}

A plan is a list of segments [first, end]: the blocks from `first` up to, and without,
`end` are checkpointed together. Blocks in no segment keep all that they save.
"""


def peak_mib(blocks, segments):
    """Give the most that is saved at once."""
    return sum(block["saved_mib"] for block in blocks)


def recomputed_gflop(blocks, segments):
    """Give the operations that the backward pass does again."""
    return 0


def plan(blocks, cap_mib):
    """Give the segments that keep to the cap and recompute the least."""
    return [[block, block + 1] for block in range(len(blocks))]
