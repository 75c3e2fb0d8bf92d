# pieces that are smaller than they need be, and a little room for arrivals


def padding_share(prompts):
    return 1 - sum(prompts) / (len(prompts) * max(prompts))


def idle_share(outputs):
    return 1 - sum(outputs) / (len(outputs) * max(outputs))


def iteration_s(engine, tokens, cached):
    work_s = max(engine["weights_s"], tokens * engine["token_s"])
    return work_s + cached * engine["cached_token_s"]


def missing(request):
    made = request["prompt_tokens"] + request["generated_tokens"]
    return made - request["cached_tokens"]


def blocks(engine, tokens):
    return -(-tokens // engine["block_tokens"])


def schedule(engine, state):
    free = state["free_blocks"]
    decision = {}

    def wants(request, tokens):
        held = request["cached_tokens"]
        return blocks(engine, held + tokens) - blocks(engine, held)

    started = [each for each in state["requests"] if each["cached_tokens"]]
    running = [each for each in started if missing(each) == 1]
    while running and sum(wants(each, 1) for each in running) > free:
        last = started.pop()
        decision[last["name"]] = -1
        free += blocks(engine, last["cached_tokens"])
        running = [each for each in running if each is not last]
    is_full = bool(decision)

    running = running[: engine["most_requests"]]
    for each in running:
        decision[each["name"]] = 1
        free -= wants(each, 1)
    if is_full:
        return decision

    cached = sum(each["cached_tokens"] for each in running)
    for_tokens_s = engine["gap_s"] - cached * engine["cached_token_s"]
    budget = int(0.8 * for_tokens_s / engine["token_s"]) - len(running)
    budget = min(budget, engine["most_tokens"] - len(running))
    slots = engine["most_requests"] - len(started)
    for each in state["requests"]:
        if each["name"] in decision:
            continue
        is_new = not each["cached_tokens"]
        whole = wants(each, missing(each))
        room = free - len(running) - engine["blocks"] // 50
        if is_new and (slots <= 0 or (whole > room and started)):
            break
        tokens = min(missing(each), budget)
        if tokens <= 0 or wants(each, tokens) > free:
            break
        decision[each["name"]] = tokens
        budget -= tokens
        # its whole prompt is spoken for, though it gets the blocks piece by piece
        free -= whole if is_new else wants(each, tokens)
        slots -= is_new
    return decision
