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

    started = [request for request in state["requests"] if request["cached_tokens"]]
    running = [request for request in started if missing(request) == 1]
    while running and sum(wants(request, 1) for request in running) > free:
        last = started.pop()
        decision[last["name"]] = -1
        free += blocks(engine, last["cached_tokens"])
        running = [request for request in running if request is not last]
    is_full = bool(decision)

    for request in running:
        decision[request["name"]] = 1
        free -= wants(request, 1)
    if is_full:
        return decision

    cached = sum(request["cached_tokens"] for request in running)
    for_tokens_s = engine["gap_s"] - cached * engine["cached_token_s"]
    budget = int(0.8 * for_tokens_s / engine["token_s"]) - len(running)
    budget = min(budget, engine["most_tokens"] - len(running))
    slots = engine["most_requests"] - len(started)
    for request in state["requests"]:
        if request["name"] in decision:
            continue
        is_new = not request["cached_tokens"]
        whole = wants(request, missing(request))
        room = free - len(running) - engine["blocks"] // 50
        if is_new and (slots <= 0 or (whole > room and started)):
            break
        tokens = min(missing(request), budget)
        if tokens <= 0 or wants(request, tokens) > free:
            break
        decision[request["name"]] = tokens
        budget -= tokens
        # its whole prompt is spoken for, though it gets the blocks piece by piece
        free -= whole if is_new else wants(request, tokens)
        slots -= is_new
    return decision
