"""Which blocks to recompute, so that activations keep to a cap."""


def steps(blocks, segments):
    """Give first block, end, and whether it is a segment, of all in order."""
    done, rows = 0, []
    for first, end in [*segments, [len(blocks), len(blocks)]]:
        rows += [(block, block + 1, False) for block in range(done, first)]
        if first < end:
            rows.append((first, end, True))
        done = end
    return rows


def peak_mib(blocks, segments):
    """Look at each step when its backward pass begins."""
    held = peak = 0
    for first, end, is_segment in steps(blocks, segments):
        saved = sum(block["saved_mib"] for block in blocks[first:end])
        peak = max(peak, held + saved)
        held += blocks[first]["input_mib"] if is_segment else saved
    return peak


def recomputed_gflop(blocks, segments):
    """Add up segments; each stops at its last saved tensor."""
    total = 0
    for first, end in segments:
        total += sum(block["gflop"] for block in blocks[first:end])
        total -= blocks[end - 1]["tail_gflop"]
    return total


def plan(blocks, cap_mib):
    """Keep to the cap, or come as near to it as can be."""
    segments = under(blocks, cap_mib)
    low = cap_mib
    high = sum(block["saved_mib"] for block in blocks)
    while segments is None and low + 1 < high:
        middle = (low + high) // 2
        if under(blocks, middle) is None:
            low = middle
        else:
            high = middle
    return under(blocks, high) if segments is None else segments


def under(blocks, cap_mib):
    """Give the segments with the least recomputation; None if there are none."""
    # by end: (held, recomputed, segments) of the blocks before it
    ways = [[] for _ in range(len(blocks) + 1)]
    ways[0] = [(0, 0, [])]
    for first, block in enumerate(blocks):
        for held, recomputed, segments in worth_keeping(ways[first]):
            if held + block["saved_mib"] <= cap_mib:
                way = (held + block["saved_mib"], recomputed, segments)
                ways[first + 1].append(way)
            saved = gflop = 0
            for end in range(first + 1, len(blocks) + 1):
                saved += blocks[end - 1]["saved_mib"]
                gflop += blocks[end - 1]["gflop"]
                if held + saved > cap_mib:
                    break
                again = recomputed + gflop - blocks[end - 1]["tail_gflop"]
                way = (held + block["input_mib"], again, [*segments, [first, end]])
                ways[end].append(way)
    last = min(ways[-1], key=lambda way: way[1], default=None)
    return None if last is None else last[2]


def worth_keeping(ways):
    """Leave out what holds no less and recomputes no less than another."""
    least, kept = float("inf"), []
    for way in sorted(ways):
        if way[1] < least:
            least = way[1]
            kept.append(way)
    return kept
