"""For each block a table: the least recomputation with so many MiB held."""


def peak_mib(blocks, segments):
    """Replay the forward pass, then ask each place what it sees."""
    held, peak, done = 0, 0, 0
    for first, end in segments + [[len(blocks)] * 2]:
        for block in blocks[done:first]:
            held += block["saved_mib"]
            peak = max(peak, held)
        if first < end:
            rebuilt = sum(block["saved_mib"] for block in blocks[first:end])
            peak = max(peak, held + rebuilt)
            held += blocks[first]["input_mib"]
        done = end
    return peak


def recomputed_gflop(blocks, segments):
    """Go through the blocks of each segment."""
    total = 0
    for first, end in segments:
        for block in range(first, end):
            total += blocks[block]["gflop"]
            if block == end - 1:
                total -= blocks[block]["tail_gflop"]
    return total


def plan(blocks, cap_mib):
    """Fill the table; where that is not enough fill it for a larger cap."""
    segments = table(blocks, cap_mib)
    step = sum(block["saved_mib"] for block in blocks)
    cap = cap_mib
    while segments is None and step:
        # as far as nothing fits, in smaller and smaller steps
        if table(blocks, cap + step) is None:
            cap += step
        else:
            step //= 2
    return table(blocks, cap + 1) if segments is None else segments


def table(blocks, cap_mib):
    """Give segments, or None."""
    rows = [{} for _ in range(len(blocks) + 1)]
    rows[0][0] = (0, None)
    for first in range(len(blocks)):
        cheapest = None
        for held in sorted(rows[first]):
            gflop = rows[first][held][0]
            if cheapest is not None and gflop >= cheapest:
                continue
            cheapest = gflop
            kept = held + blocks[first]["saved_mib"]
            if kept <= cap_mib:
                put(rows[first + 1], kept, gflop, (first, held, False))
            for end in range(first + 1, len(blocks) + 1):
                rebuilt = sum(block["saved_mib"] for block in blocks[first:end])
                if held + rebuilt > cap_mib:
                    break
                again = gflop + recomputed_gflop(blocks, [[first, end]])
                less = held + blocks[first]["input_mib"]
                put(rows[end], less, again, (first, held, True))
    if not rows[-1]:
        return None
    held = min(rows[-1], key=lambda one: rows[-1][one][0])
    end, segments = len(blocks), []
    while end:
        first, before, is_segment = rows[end][held][1]
        if is_segment:
            segments.insert(0, [first, end])
        end, held = first, before
    return segments


def put(row, held, gflop, origin):
    """Write down a way if it is the cheapest with so much held."""
    if held not in row or gflop < row[held][0]:
        row[held] = (gflop, origin)
