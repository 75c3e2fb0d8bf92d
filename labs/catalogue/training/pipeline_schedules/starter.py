"""Order the work of a pipeline's stages. Fill in the five functions.

A pass is [stage, chunk, micro_batch, backward]: forward (0) or backward (1) through
this chunk of the stage's layers. Each stage does its passes in the order of the list;
passes of other stages may stand between them.
"""


def gpipe(stages, micro_batches):
    """One micro-batch after the other, which is no pipeline."""
    return [
        [stage, 0, micro_batch, backward]
        for micro_batch in range(micro_batches)
        for backward in (0, 1)
        for stage in range(stages)
    ]


def one_f_one_b(stages, micro_batches):
    """Give a schedule with as short a bubble as GPipe's, and less memory."""
    return gpipe(stages, micro_batches)


def interleaved(stages, chunks, micro_batches):
    """Give a schedule with a shorter bubble."""
    return []


def total_time(stages, chunks, micro_batches, backward, schedule):
    """Give the time of a schedule, in forward passes of a chunk."""
    return 0


def capped(stages, micro_batches, backward, most_held):
    """Give a fast schedule in which no stage holds too much."""
    return gpipe(stages, micro_batches)
