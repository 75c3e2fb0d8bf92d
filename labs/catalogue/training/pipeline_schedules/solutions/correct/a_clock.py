# stages are simulated: each does a backward pass as soon as it can, else goes forward


def gpipe(stages, micro_batches):
    rows = [[s, 0, m, 0] for m in range(micro_batches) for s in range(stages)]
    for m in reversed(range(micro_batches)):
        rows += [[s, 0, m, 1] for s in reversed(range(stages))]
    return rows


def one_f_one_b(stages, micro_batches):
    return simulated(stages, micro_batches, 2, stages)


def capped(stages, micro_batches, backward, most_held):
    return simulated(stages, micro_batches, backward, most_held)


def simulated(stages, micro_batches, backward, most_held):
    rows, done = [], {}
    free = [0] * stages
    forward_of, back_of = [0] * stages, [0] * stages
    now = 0
    while min(back_of) < micro_batches:
        for s in range(stages):
            if free[s] > now:
                continue
            m = back_of[s]
            known = done.get((s, m, 0), now + 1) <= now
            if s < stages - 1:
                known = known and done.get((s + 1, m, 1), now + 1) <= now
            if m < micro_batches and known:
                kind, back_of[s] = 1, m + 1
            else:
                held = forward_of[s] - back_of[s]
                m = forward_of[s]
                ready = s == 0 or done.get((s - 1, m, 0), now + 1) <= now
                room = held < min(most_held, stages - s)
                if m == micro_batches or not ready or not room:
                    continue
                kind, forward_of[s] = 0, m + 1
            free[s] = done[s, m, kind] = now + (backward if kind else 1)
            rows.append([s, 0, m, kind])
        now += 1
    return rows


def interleaved(stages, chunks, micro_batches):
    if chunks == 1:
        return one_f_one_b(stages, micro_batches)
    total, rows = chunks * micro_batches, []
    for s in range(stages):
        ahead = min(2 * (stages - 1 - s) + (chunks - 1) * stages, total)
        numbers = [(0, i) for i in range(ahead)]
        for i in range(total - ahead):
            numbers += [(0, ahead + i), (1, i)]
        numbers += [(1, i) for i in range(total - ahead, total)]
        for kind, i in numbers:
            chunk = i // stages % chunks
            chunk = chunks - 1 - chunk if kind else chunk
            m = i // (stages * chunks) * stages + i % stages
            rows.append([s, chunk, m, kind])
    return rows


def total_time(stages, chunks, micro_batches, backward, schedule):
    """The longest path: each pass after the one before it on its stage."""
    ends = {tuple(row): 0 for row in schedule}
    latest, before = {}, {}
    for row in schedule:
        before[tuple(row)] = latest.get(row[0])
        latest[row[0]] = tuple(row)
    changed = True
    while changed:
        changed = False
        for s, c, m, kind in ends:
            begin = ends.get(before[s, c, m, kind], 0)
            place = c * stages + s
            if kind:
                begin = max(begin, ends[s, c, m, 0])
            other = place + (1 if kind else -1)
            if 0 <= other < stages * chunks:
                begin = max(begin, ends[other % stages, other // stages, m, kind])
            end = begin + (backward if kind else 1)
            if end != ends[s, c, m, kind]:
                ends[s, c, m, kind], changed = end, True
    return max(ends.values())
