# Trees by recursion: both halves are added up, then their first ranks
from collections import defaultdict


def ring(ranks):
    """Pass sums around, then pass what is finished around."""
    return ring_among(list(range(ranks)))


def tree(ranks):
    """Add up to rank 0, and go back the same way."""
    return tree_among([list(range(ranks))])


def halving_doubling(ranks):
    """Exchange halves, then quarters, and so on, and go back."""
    return halving_among(list(range(ranks)))


def seconds(cluster, size_bytes, schedule):
    """Add up the times of the steps."""
    chunks = 1 + max((row[3] for row in schedule), default=0)
    steps = defaultdict(lambda: defaultdict(float))
    for step, sender, receiver, _, _ in schedule:
        steps[step][sender, receiver] += size_bytes / chunks
    return sum(step_seconds(cluster, step) for step in steps.values())


def all_reduce(cluster, size_bytes):
    """Take the fastest of the schedules that are known."""
    members = defaultdict(list)
    for rank, group in enumerate(cluster["groups"]):
        members[group].append(rank)
    groups = list(members.values())
    order = [rank for group in groups for rank in group]
    known = [
        ring_among(order),
        tree_among(groups),
        halving_among(order),
        two_levels_among(groups),
    ]
    return min(known, key=lambda rows: seconds(cluster, size_bytes, rows))


def step_seconds(cluster, step):
    """Give the time of the slowest message of a step, or of the fullest uplink."""
    groups, slowest = cluster["groups"], 0.0
    leaving, entering = defaultdict(float), defaultdict(float)
    for (sender, receiver), sent in step.items():
        if groups[sender] == groups[receiver]:
            time = sent / cluster["port_bytes_per_s"] + cluster["port_latency_s"]
            slowest = max(slowest, time)
        else:
            leaving[groups[sender]] += sent
            entering[groups[receiver]] += sent
    if leaving:
        fullest = max(*leaving.values(), *entering.values())
        time = fullest / cluster["uplink_bytes_per_s"] + cluster["uplink_latency_s"]
        slowest = max(slowest, time)
    return slowest


def reduce_scatter(order, parts, first_step):
    """Pass sums around a ring; the rank at a place ends with the next place's part."""
    size, rows = len(order), []
    for turn in range(size - 1):
        for place, rank in enumerate(order):
            receiver = order[(place + 1) % size]
            for chunk in parts[(place - turn) % size]:
                rows.append([first_step + turn, rank, receiver, chunk, 1])
    return rows


def all_gather(order, parts, first_step):
    """Pass around a ring what a reduce-scatter left."""
    size, rows = len(order), []
    for turn in range(size - 1):
        for place, rank in enumerate(order):
            receiver = order[(place + 1) % size]
            for chunk in parts[(place + 1 - turn) % size]:
                rows.append([first_step + turn, rank, receiver, chunk, 0])
    return rows


def ring_among(order):
    """Make a ring of ranks in an order."""
    parts = [[chunk] for chunk in range(len(order))]
    turns = len(order) - 1
    return reduce_scatter(order, parts, 0) + all_gather(order, parts, turns)


def tree_among(groups):
    """Add up in each group, then among their first ranks, and go back the same way."""
    up, within = [], 0
    for members in groups:
        rows, within = sums(members)
        up += rows
    across, levels = sums([members[0] for members in groups])
    up += [[within + step, *rest] for step, *rest in across]
    last = 2 * (within + levels) - 1
    return up + [[last - step, low, high, 0, 0] for step, high, low, _, _ in up]


def sums(members):
    """Give the messages with which the first one has the sum, and how many steps."""
    if len(members) == 1:
        return [], 0
    middle = (len(members) + 1) // 2
    first, steps = sums(members[:middle])
    second, others = sums(members[middle:])
    steps = max(steps, others)
    return [*first, *second, [steps, members[middle], members[0], 0, 1]], steps + 1


def halving_among(order):
    """Exchange with neighbours first, while there is most to send."""
    size = 1
    while 2 * size <= len(order):
        size *= 2
    extra = len(order) - size
    folds = [(order[2 * i], order[2 * i + 1]) for i in range(extra)]
    core = [high for _, high in folds] + order[2 * extra :]
    rows = [[0, low, high, c, 1] for low, high in folds for c in range(size)]
    step, distance = 1, 1
    exchanges = []
    while distance < size:
        for place in range(size):
            for chunk in range(size):
                # both have the same chunks so far, and each keeps those like its place
                other = place ^ distance
                if chunk % (2 * distance) == other % (2 * distance):
                    exchanges.append([step, core[place], core[other], chunk, 1])
        distance *= 2
        step += 1
    rows += exchanges
    last = 2 * step - 1
    # what was given away to be added comes back when it is finished
    rows += [[last - at, high, low, c, 0] for at, low, high, c, _ in exchanges]
    rows += [[last, high, low, c, 0] for low, high in folds for c in range(size)]
    return rows


def two_levels_among(groups):
    """Reduce-scatter in each group, all-reduce across groups, gather in each group."""
    within, across, rows = len(groups[0]), len(groups), []
    parts = [[i * across + j for j in range(across)] for i in range(within)]
    for group in groups:
        rows += reduce_scatter(group, parts, 0)
        rows += all_gather(group, parts, within - 1 + 2 * (across - 1))
    for place in range(within):
        peers = [group[place] for group in groups]
        pieces = [[chunk] for chunk in parts[(place + 1) % within]]
        rows += reduce_scatter(peers, pieces, within - 1)
        rows += all_gather(peers, pieces, within - 1 + across - 1)
    return rows
