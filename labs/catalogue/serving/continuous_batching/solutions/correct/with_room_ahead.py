# lets in while some blocks stay free
HELD_BACK = 0.04
ITEM = "cached_tokens"


def padding_share(prompts):
    longest = max(prompts)
    return sum(longest - each for each in prompts) / (longest * len(prompts))


def idle_share(outputs):
    return padding_share(outputs)


def iteration_s(engine, tokens, cached):
    computed = tokens * engine["token_s"]
    read = engine["weights_s"]
    return (computed if computed > read else read) + cached * engine["cached_token_s"]


class Cache:
    """Counts blocks that are handed out and given back."""

    def __init__(self, engine, free):
        self.size, self.free = engine["block_tokens"], free

    def of(self, tokens):
        return (tokens + self.size - 1) // self.size

    def growth(self, request, tokens):
        return self.of(request[ITEM] + tokens) - self.of(request[ITEM])

    def take(self, request, tokens):
        count = self.growth(request, tokens)
        if count > self.free:
            return False
        self.free -= count
        return True


def left(request):
    return request["prompt_tokens"] + request["generated_tokens"] - request[ITEM]


def schedule(engine, state):
    cache, batch = Cache(engine, state["free_blocks"]), {}
    inside = [each for each in state["requests"] if each[ITEM] > 0]
    generating = [each for each in inside if left(each) == 1]
    was_evicted = False
    place = 0
    while place < len(generating):
        one = generating[place]
        if cache.take(one, 1):
            batch[one["name"]] = 1
            place += 1
            continue
        # who came last has no token yet: they are given from the first one on
        victim = inside.pop()
        cache.free += cache.of(victim[ITEM])
        batch[victim["name"]] = -1
        generating = [each for each in generating if each is not victim]
        place = min(place, len(generating))
        was_evicted = True
    if was_evicted:
        return batch

    held = sum(each[ITEM] + 1 for each in generating)
    seconds = engine["gap_s"] * 0.92 - held * engine["cached_token_s"]
    room = min(int(seconds / engine["token_s"]), engine["most_tokens"]) - len(
        generating
    )
    for each in inside:
        part = min(left(each), room)
        if each["name"] not in batch and part > 0 and cache.take(each, part):
            batch[each["name"]] = part
            room -= part
    promised = sum(cache.growth(each, left(each)) for each in inside)
    keep = promised + max(HELD_BACK * engine["blocks"], len(inside))
    count = len(inside)
    for each in state["requests"]:
        if each[ITEM]:
            continue
        is_alone = not inside and not batch
        whole = cache.growth(each, left(each))
        if count >= engine["most_requests"] or room <= 0:
            break
        if whole + (0 if is_alone else keep) > cache.free:
            break
        part = min(left(each), room)
        cache.take(each, part)
        keep += whole - cache.growth(each, part)
        batch[each["name"]] = part
        room -= part
        count += 1
    return batch
