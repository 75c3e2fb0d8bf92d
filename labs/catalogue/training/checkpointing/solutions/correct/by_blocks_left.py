"""The same choice from the front, with the room that is left remembered."""

from functools import cache


def peak_mib(blocks, segments):
    """Add up what is there in every moment of the backward pass."""
    begins = {first: end for first, end in segments}
    moments, held, block = [0], [], 0
    while block < len(blocks):
        end = begins.get(block, block + 1)
        saved = [one["saved_mib"] for one in blocks[block:end]]
        moments.append(sum(held) + sum(saved))
        held.append(blocks[block]["input_mib"] if block in begins else saved[0])
        block = end
    return max(moments)


def again_gflop(blocks, first, end):
    """Give what one segment recomputes."""
    inner = sum(block["gflop"] for block in blocks[first : end - 1])
    return inner + blocks[end - 1]["gflop"] - blocks[end - 1]["tail_gflop"]


def recomputed_gflop(blocks, segments):
    """Add up all segments."""
    return sum(again_gflop(blocks, first, end) for first, end in segments)


def plan(blocks, cap_mib):
    """Take the cap, or the smallest larger one for which there is a plan."""
    whole = sum(block["saved_mib"] for block in blocks)
    low, high = cap_mib, max(cap_mib, whole)
    while low < high:
        middle = (low + high) // 2
        if best(blocks, middle) is None:
            low = middle + 1
        else:
            high = middle
    return [list(segment) for segment in best(blocks, high)[1]]


def best(blocks, cap_mib):
    """Give the least recomputation and its segments; None if there is no plan."""

    @cache
    def behind(first, room):
        if first == len(blocks):
            return 0, ()
        ways = []
        if blocks[first]["saved_mib"] <= room:
            rest = behind(first + 1, room - blocks[first]["saved_mib"])
            if rest is not None:
                ways.append(rest)
        saved = 0
        for end in range(first + 1, len(blocks) + 1):
            saved += blocks[end - 1]["saved_mib"]
            if saved > room:
                break
            rest = behind(end, room - blocks[first]["input_mib"])
            if rest is not None:
                gflop = rest[0] + again_gflop(blocks, first, end)
                ways.append((gflop, ((first, end), *rest[1])))
        return min(ways, default=None)

    return behind(0, cap_mib)
