# The cheapest unfinished plan is always continued first, as in a search for a route
import heapq
from itertools import accumulate


def peak_mib(blocks, segments):
    """Compare the moments at which each block or segment turns around."""
    ends = dict(segments)
    place = held = peak = 0
    while place < len(blocks):
        end = ends.get(place, place + 1)
        turned = held + sum(block["saved_mib"] for block in blocks[place:end])
        peak = max(peak, turned)
        held = held + blocks[place]["input_mib"] if place in ends else turned
        place = end
    return peak


def recomputed_gflop(blocks, segments):
    """Take the difference of running sums."""
    sums = [0, *accumulate(block["gflop"] for block in blocks)]
    return sum(
        sums[end] - sums[first] - blocks[end - 1]["tail_gflop"]
        for first, end in segments
    )


def plan(blocks, cap_mib):
    """Raise the cap in doubled steps, then close in, where nothing fits."""
    route = cheapest(blocks, cap_mib)
    if route is not None:
        return route
    step = 1
    while cheapest(blocks, cap_mib + step) is None:
        step *= 2
    at_least = cap_mib + step // 2
    while step > 1:
        step //= 2
        if cheapest(blocks, at_least + step) is None:
            at_least += step
    return cheapest(blocks, at_least + 1)


def cheapest(blocks, cap_mib):
    """Search by recomputation; None if no plan keeps to the cap."""
    queue, least_held = [(0, 0, 0, ())], [float("inf")] * (len(blocks) + 1)
    while queue:
        gflop, held, place, segments = heapq.heappop(queue)
        if place == len(blocks):
            return [list(segment) for segment in segments]
        if held >= least_held[place]:
            continue
        least_held[place] = held
        block = blocks[place]
        kept = held + block["saved_mib"]
        if kept <= cap_mib:
            heapq.heappush(queue, (gflop, kept, place + 1, segments))
        rebuilt = held
        for end in range(place + 1, len(blocks) + 1):
            rebuilt += blocks[end - 1]["saved_mib"]
            if rebuilt > cap_mib:
                break
            again = gflop + recomputed_gflop(blocks, [(place, end)])
            entry = (again, held + block["input_mib"], end, (*segments, (place, end)))
            heapq.heappush(queue, entry)
    return None
