# a tree by recursion, a schedule as a plan of who holds what, and a choice by pricing


def ring(ranks):
    return turned(list(range(ranks)), [[c] for c in range(ranks)])


def turned(order, parts, step=0, phases=(1, 0)):
    size, rows = len(order), []
    ahead = 0 if phases[0] else 1
    for adds in phases:
        for turn in range(size - 1):
            for i in range(size):
                for chunk in parts[(i + ahead - turn) % size]:
                    rows.append([step, order[i], order[(i + 1) % size], chunk, adds])
            step += 1
        ahead += 1
    return rows


def tree(ranks):
    return mirrored(joined(list(range(ranks))))


def joined(order):
    """Join both halves of a range at the middle of it, as deep as is needed."""
    if len(order) < 2:
        return order[0], []
    middle = (len(order) + 1) // 2
    left, left_rows = joined(order[:middle])
    right, right_rows = joined(order[middle:])
    rows = left_rows + right_rows
    step = 1 + max((row[0] for row in rows), default=-1)
    return right, [*rows, [step, left, right, 0, 1]]


def mirrored(root_and_rows):
    rows = root_and_rows[1]
    last = 1 + 2 * max((row[0] for row in rows), default=0)
    return rows + [[last - at, there, here, c, 0] for at, here, there, c, _ in rows]


def halving_doubling(ranks):
    return exchanged(list(range(ranks)))


def exchanged(order):
    size = 1
    while size * 2 <= len(order):
        size *= 2
    core, guests = order[:size], order[size:]
    # what each has a part of, as the set of chunks that it still works on
    mine = [set(range(size)) for _ in core]
    rows = [[0, g, core[i], c, 1] for i, g in enumerate(guests) for c in range(size)]
    step, bit = 0, 1
    while bit < size:
        step += 1
        for i, rank in enumerate(core):
            gives = {c for c in mine[i] if (c & bit) != (i & bit)}
            rows += [[step, rank, core[i ^ bit], c, 1] for c in gives]
            mine[i] -= gives
        bit *= 2
    while bit > 1:
        bit //= 2
        step += 1
        before = [set(chunks) for chunks in mine]
        for i, rank in enumerate(core):
            rows += [[step, rank, core[i ^ bit], c, 0] for c in before[i]]
            mine[i ^ bit] |= before[i]
    step += 1
    for i, guest in enumerate(guests):
        rows += [[step, core[i], guest, c, 0] for c in range(size)]
    return rows


def seconds(cluster, size_bytes, schedule):
    chunks = max((row[3] for row in schedule), default=0) + 1
    steps = {}
    for row in schedule:
        steps.setdefault(row[0], []).append(row)
    return sum(one_step(rows, cluster, size_bytes / chunks) for rows in steps.values())


def one_step(rows, cluster, chunk_bytes):
    group, near, far = cluster["groups"], {}, {}
    for _, sender, receiver, _, _ in rows:
        if group[sender] == group[receiver]:
            near[sender] = near.get(sender, 0) + 1
        else:
            for link in (("up", group[sender]), ("down", group[receiver])):
                far[link] = far.get(link, 0) + 1
    times = [0.0]
    for kind, counts in (("port", near), ("uplink", far)):
        if counts:
            sent_s = max(counts.values()) * chunk_bytes / cluster[kind + "_bytes_per_s"]
            times.append(sent_s + cluster[kind + "_latency_s"])
    return max(times)


def all_reduce(cluster, size_bytes):
    by_group = {}
    for rank, group in enumerate(cluster["groups"]):
        by_group.setdefault(group, []).append(rank)
    groups = list(by_group.values())
    order = sum(groups, [])
    best = turned(order, [[c] for c in range(len(order))])
    for rows in (roots(groups), exchanged(order), spread(groups)):
        if seconds(cluster, size_bytes, rows) < seconds(cluster, size_bytes, best):
            best = rows
    return best


def roots(groups):
    found = [joined(group) for group in groups]
    rows = [row for _, rows in found for row in rows]
    depth = 1 + max((row[0] for row in rows), default=-1)
    root, across = joined([root for root, _ in found])
    return mirrored((root, rows + [[depth + at, *rest] for at, *rest in across]))


def spread(groups):
    within, across, rows = len(groups[0]), len(groups), []
    parts = [[i * across + j for j in range(across)] for i in range(within)]
    for group in groups:
        rows += turned(group, parts, 0, (1,))
        rows += turned(group, parts, within + 2 * across - 3, (0,))
    for i, peers in enumerate(zip(*groups)):
        pieces = [[c] for c in parts[(i + 1) % within]]
        rows += turned(list(peers), pieces, within - 1)
    return rows
