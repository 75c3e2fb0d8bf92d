"""Write all-reduces as lists of messages. Fill in the five functions.

A message is [step, sender, receiver, chunk, adds]: in this step the sender sends this
chunk of the buffer; the receiver adds it to its own (1), or puts it in its place (0).

A cluster is, for two hosts of two ranks each,

    {"groups": [0, 0, 1, 1],
     "port_bytes_per_s": 450e9, "port_latency_s": 3e-06,
     "uplink_bytes_per_s": 50e9, "uplink_latency_s": 1.2e-05}
"""


def ring(ranks):
    """All send their whole buffer to rank 0, one after the other, and get the sum."""
    schedule = []
    for rank in range(1, ranks):
        schedule.append([rank - 1, rank, 0, 0, 1])
        schedule.append([ranks - 2 + rank, 0, rank, 0, 0])
    return schedule


def tree(ranks):
    """Give a schedule of few steps."""
    return ring(ranks)


def halving_doubling(ranks):
    """Give a schedule of few steps that sends few bytes."""
    return ring(ranks)


def seconds(cluster, size_bytes, schedule):
    """Give the time that a schedule takes."""
    return 0.0


def all_reduce(cluster, size_bytes):
    """Give a fast schedule for this cluster and this size."""
    return ring(len(cluster["groups"]))
