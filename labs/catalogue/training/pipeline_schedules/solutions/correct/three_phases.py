from functools import cache


def gpipe(stages, micro_batches):
    return phases(stages, 1, micro_batches, lambda stage: micro_batches)


def one_f_one_b(stages, micro_batches):
    return phases(stages, 1, micro_batches, lambda stage: stages - stage)


def capped(stages, micro_batches, backward, most_held):
    """Take the pass that can begin first, a backward one if there are two."""
    rows, ends, free = [], {}, [0] * stages
    begun, finished = [0] * stages, [0] * stages
    while len(rows) < 2 * stages * micro_batches:
        found = []
        for stage in range(stages):
            number = finished[stage]
            waits = [ends.get((stage, number, 0))]
            if stage + 1 < stages:
                waits.append(ends.get((stage + 1, number, 1)))
            if None not in waits:
                found.append((max(free[stage], *waits), 0, stage, number))
            number = begun[stage]
            before = ends.get((stage - 1, number, 0)) if stage else 0
            room = number - finished[stage] < min(most_held, stages - stage)
            if room and number < micro_batches and before is not None:
                found.append((max(free[stage], before), 1, stage, number))
        begin, forward, stage, number = min(found)
        (begun if forward else finished)[stage] += 1
        free[stage] = begin + (1 if forward else backward)
        ends[stage, number, 1 - forward] = free[stage]
        rows.append([stage, 0, number, 1 - forward])
    return rows


def interleaved(stages, chunks, micro_batches):
    def ahead(stage):
        if chunks == 1:
            return stages - stage
        return 2 * (stages - stage - 1) + (chunks - 1) * stages + 1

    return phases(stages, chunks, micro_batches, ahead)


def phases(stages, chunks, micro_batches, ahead):
    """Fill, one of each in turns, drain."""
    forward = [
        (chunk, first + i)
        for first in range(0, micro_batches, stages if chunks > 1 else 1)
        for chunk in range(chunks)
        for i in range(stages if chunks > 1 else 1)
    ]
    rows = []
    for stage in range(stages):
        begun = 0
        for finished, (chunk, number) in enumerate(forward):
            while begun < min(finished + ahead(stage), len(forward)):
                rows.append([stage, *forward[begun], 0])
                begun += 1
            rows.append([stage, chunks - 1 - chunk, number, 1])
    return rows


def total_time(stages, chunks, micro_batches, backward, schedule):
    orders = {}
    for row in schedule:
        orders.setdefault(row[0], []).append(tuple(row))
    previous = {}
    for order in orders.values():
        previous |= dict(zip(order[1:], order))

    @cache
    def end(work):
        stage, chunk, number, kind = work
        waits = [previous[work]] if work in previous else []
        if kind:
            waits.append((stage, chunk, number, 0))
        place = chunk * stages + stage + (1 if kind else -1)
        if 0 <= place < stages * chunks:
            waits.append((place % stages, place // stages, number, kind))
        return max(map(end, waits), default=0) + (backward if kind else 1)

    return max(end(tuple(row)) for row in schedule)
