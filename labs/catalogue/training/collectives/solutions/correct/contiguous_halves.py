from itertools import groupby


def ring(ranks):
    order = list(range(ranks))
    return around(order, range(ranks), 0)


def around(order, chunks, start):
    """An all-reduce of some chunks around a ring, which turns down."""
    size, rows = len(order), []
    for turn in range(2 * (size - 1)):
        adds = int(turn < size - 1)
        for place in range(size):
            chunk = chunks[(place + turn) % size]
            rows.append([start + turn, order[place], order[place - 1], chunk, adds])
    return rows


def tree(ranks):
    return few_steps(list(range(ranks)))


def few_steps(order):
    """Recursive doubling: whole sums are exchanged, in half as many steps as a tree."""
    size = 1 << (len(order).bit_length() - 1)
    spare = order[size:]
    rows = [[0, rank, order[i], 0, 1] for i, rank in enumerate(spare)]
    step, distance = 1, 1
    while distance < size:
        for i in range(size):
            rows.append([step, order[i], order[i ^ distance], 0, 1])
        step, distance = step + 1, 2 * distance
    return rows + [[step, order[i], rank, 0, 0] for i, rank in enumerate(spare)]


def halving_doubling(ranks):
    return halves(list(range(ranks)))


def halves(order):
    """Ranges of chunks, halved from the far partner to the near one."""
    size = 1 << (len(order).bit_length() - 1)
    spare = order[size:]
    rows = [
        [0, rank, order[i], c, 1] for i, rank in enumerate(spare) for c in range(size)
    ]
    begins, step, width = [0] * size, 1, size // 2
    while width:
        for i in range(size):
            # the half that the partner keeps
            partner = i ^ width
            keeps = begins[i] + (width if partner & width else 0)
            for chunk in range(keeps, keeps + width):
                rows.append([step, order[i], order[partner], chunk, 1])
        begins = [begin + (i & width) for i, begin in enumerate(begins)]
        width //= 2
        step += 1
    width = 1
    while width < size:
        for i in range(size):
            for chunk in range(begins[i], begins[i] + width):
                rows.append([step, order[i], order[i ^ width], chunk, 0])
        begins = [begin & ~width for begin in begins]
        width *= 2
        step += 1
    for i, rank in enumerate(spare):
        rows += [[step, order[i], rank, chunk, 0] for chunk in range(size)]
    return rows


def seconds(cluster, size_bytes, schedule):
    groups = cluster["groups"]
    chunk_bytes = size_bytes / (1 + max([row[3] for row in schedule], default=0))
    total = 0.0
    for _, rows in groupby(sorted(schedule), key=lambda row: row[0]):
        near, leaving, entering = {}, {}, {}
        for _, sender, receiver, _, _ in rows:
            here, there = groups[sender], groups[receiver]
            if here == there:
                near[sender] = near.get(sender, 0) + chunk_bytes
            else:
                leaving[here] = leaving.get(here, 0) + chunk_bytes
                entering[there] = entering.get(there, 0) + chunk_bytes
        far = [*leaving.values(), *entering.values()]
        near_s = (
            cluster["port_latency_s"]
            + max(near.values(), default=0) / (cluster["port_bytes_per_s"])
        )
        far_s = (
            cluster["uplink_latency_s"]
            + max(far, default=0) / (cluster["uplink_bytes_per_s"])
        )
        total += max(near_s if near else 0, far_s if far else 0)
    return total


def all_reduce(cluster, size_bytes):
    numbers = cluster["groups"]
    order = sorted(range(len(numbers)), key=lambda rank: numbers[rank])
    within = numbers.count(numbers[0])
    groups = [order[i : i + within] for i in range(0, len(order), within)]
    tries = [around(order, range(len(order)), 0), few_steps(order), halves(order)]
    tries += [leaders(groups), levels(groups)]
    return min(tries, key=lambda rows: seconds(cluster, size_bytes, rows))


def leaders(groups):
    """Trees within groups; their roots exchange whole sums."""
    up, span = [], 1
    while span < len(groups[0]):
        step = len({row[0] for row in up})
        for group in groups:
            for i in range(0, len(group) - span, 2 * span):
                up.append([step, group[i + span], group[i], 0, 1])
        span *= 2
    steps = len({row[0] for row in up})
    middle = few_steps([group[0] for group in groups])
    rows = up + [[steps + step, *rest] for step, *rest in middle]
    last = max(row[0] for row in rows) + steps
    return rows + [[last - step, low, high, 0, 0] for step, high, low, _, _ in up]


def levels(groups):
    """A reduce-scatter in groups, all-reduces of what each rank has, an all-gather."""
    within, across, rows = len(groups[0]), len(groups), []
    gathered_at = within - 1 + 2 * (across - 1)
    for group in groups:
        for turn in range(within - 1):
            for place in range(within):
                begin = (place - turn) % within * across
                pair = group[place], group[(place + 1) % within]
                for c in range(begin, begin + across):
                    rows.append([turn, *pair, c, 1])
                begin = (place + 1 - turn) % within * across
                for c in range(begin, begin + across):
                    rows.append([gathered_at + turn, *pair, c, 0])
    for place in range(within):
        begin = (place + 1) % within * across
        peers = [group[place] for group in groups]
        rows += around(peers, range(begin, begin + across), within - 1)
    return rows
