# Rows are sorted by phase, and one loop hands out tokens and blocks to all of them
from functools import partial


def share_of_nothing(lengths):
    area = max(lengths) * len(lengths)
    return (area - sum(lengths)) / area


padding_share = partial(share_of_nothing)
idle_share = partial(share_of_nothing)


def iteration_s(engine, tokens, cached):
    seconds = [engine["weights_s"], engine["token_s"] * tokens]
    return sum([max(seconds), engine["cached_token_s"] * cached])


class Row:
    def __init__(self, place, request, size):
        self.name = request["name"]
        self.place, self.size = place, size
        self.cached = request["cached_tokens"]
        made = request["prompt_tokens"] + request["generated_tokens"]
        self.missing = made - self.cached

    @property
    def phase(self):
        if not self.cached:
            return 2
        return 0 if self.missing == 1 else 1

    @property
    def held(self):
        return (self.cached + self.size - 1) // self.size

    def more(self, tokens):
        return (self.cached + tokens + self.size - 1) // self.size - self.held


def schedule(engine, state):
    size = engine["block_tokens"]
    rows = [Row(at, each, size) for at, each in enumerate(state["requests"])]
    rows.sort(key=lambda row: (row.phase, row.place))
    free = state["free_blocks"]
    out = {}

    generating = [row for row in rows if row.phase == 0]
    inside = sorted((row for row in rows if row.cached), key=lambda row: row.place)
    while sum(row.more(1) for row in generating) > free:
        gone = inside.pop()
        out[gone.name] = -1
        free += gone.held
        generating = [row for row in generating if row.name != gone.name]

    stop = bool(out)
    read_s = engine["cached_token_s"] * sum(row.cached for row in generating)
    left = min(
        (engine["gap_s"] * 0.95 - read_s) / engine["token_s"], engine["most_tokens"]
    )
    left = int(left)
    members = len(inside)
    for row in rows:
        if row.name in out:
            continue
        if row.phase == 0:
            out[row.name] = 1
            free -= row.more(1)
            left -= 1
            continue
        if stop or left <= 0:
            break
        if row.phase == 2:
            if members == engine["most_requests"]:
                break
            if row.more(row.missing) + len(generating) > free:
                break
            members += 1
        tokens = min(row.missing, left)
        if row.more(tokens) > free:
            break
        out[row.name] = tokens
        left -= tokens
        free -= row.more(row.missing if row.phase == 2 else tokens)
    return out
