# Times come by relaxation: each pass is put off until all that it waits for has ended
def gpipe(stages, micro_batches):
    """Go forward with all micro-batches, then back with all."""
    return [
        [stage, 0, micro_batch, backward]
        for stage in range(stages)
        for backward in (0, 1)
        for micro_batch in range(micro_batches)
    ]


def one_f_one_b(stages, micro_batches):
    """Begin with as many forward passes as there are stages from here on."""
    rows = []
    for stage in range(stages):
        ahead = min(stages - stage, micro_batches)
        for kind, number in alternating(ahead, micro_batches):
            rows.append([stage, 0, number, kind])
    return rows


def interleaved(stages, chunks, micro_batches):
    """Go around with rounds of as many micro-batches as stages, chunk by chunk."""
    total, rows = chunks * micro_batches, []
    for stage in range(stages):
        ahead = 2 * (stages - stage - 1) + (chunks - 1) * stages + 1
        if chunks == 1:
            ahead = stages - stage
        for kind, number in alternating(min(ahead, total), total):
            round_, within = divmod(number, stages * chunks)
            chunk, place = divmod(within, stages)
            if kind:
                chunk = chunks - 1 - chunk
            rows.append([stage, chunk, round_ * stages + place, kind])
    return rows


def alternating(ahead, total):
    """Give forward (0) and backward (1) passes: some ahead, then in turns."""
    passes = [(0, number) for number in range(ahead)]
    for number in range(total):
        passes.append((1, number))
        if number + ahead < total:
            passes.append((0, number + ahead))
    return passes


def total_time(stages, chunks, micro_batches, backward, schedule):
    """Put off what begins too early, until nothing has to be."""
    before, newest = {}, {}
    for row in map(tuple, schedule):
        before[row] = newest.get(row[0])
        newest[row[0]] = row
    ends = dict.fromkeys(before, 0)
    changed = True
    while changed:
        changed = False
        for row, previous in before.items():
            waits = [] if previous is None else [previous]
            waits += needed(stages, chunks, row)
            end = max([ends[other] for other in waits], default=0)
            end += backward if row[3] else 1
            changed = changed or end != ends[row]
            ends[row] = end
    return max(ends.values())


def needed(stages, chunks, row):
    stage, chunk, micro_batch, kind = row
    place = chunk * stages + stage + (1 if kind else -1)
    rows = [(stage, chunk, micro_batch, 0)] if kind else []
    if 0 <= place < stages * chunks:
        rows.append((place % stages, place // stages, micro_batch, kind))
    return rows


def capped(stages, micro_batches, backward, most_held):
    """Let a clock run: a free stage goes back if it can, else forward if it may."""
    ends, rows, now = {}, [], 0
    free, begun, finished = [0] * stages, [0] * stages, [0] * stages
    while len(rows) < 2 * stages * micro_batches:
        for stage in range(stages):
            if free[stage] > now:
                continue
            needs = [(stage, finished[stage], 0)]
            if stage < stages - 1:
                needs.append((stage + 1, finished[stage], 1))
            held = begun[stage] - finished[stage]
            if all(ends.get(need, now + 1) <= now for need in needs):
                kind, number = 1, finished[stage]
                finished[stage] += 1
            elif (
                held < min(most_held, stages - stage)
                and begun[stage] < micro_batches
                and (
                    stage == 0 or ends.get((stage - 1, begun[stage], 0), now + 1) <= now
                )
            ):
                kind, number = 0, begun[stage]
                begun[stage] += 1
            else:
                continue
            free[stage] = now + (backward if kind else 1)
            ends[stage, number, kind] = free[stage]
            rows.append([stage, 0, number, kind])
        now += 1
    return rows
