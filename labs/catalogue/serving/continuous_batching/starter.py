"""Schedule a server's requests. Fill in the four functions.

`schedule` is called before each iteration with plain data, such as

    {"block_tokens": 16, "blocks": 4000, "most_tokens": 4096, "most_requests": 64,
     "weights_s": 0.0048, "token_s": 3.2e-05, "cached_token_s": 3.9e-08, "gap_s": 0.02}
    {"now_s": 0.31, "free_blocks": 3981,
     "requests": [{"name": "r0", "arrived_s": 0.0, "prompt_tokens": 180,
                   "limit_tokens": 240, "generated_tokens": 3, "cached_tokens": 182}]}
"""


def padding_share(prompts):
    """Give the part of a padded batch that is padding."""
    return 0.0


def idle_share(outputs):
    """Give the part of a static batch's slots that are empty."""
    return 0.0


def iteration_s(engine, tokens, cached):
    """Give the time of an iteration."""
    return engine["weights_s"]


def schedule(engine, state):
    """Decide what is computed. This one serves one request after another."""
    first = state["requests"][0]
    made = first["prompt_tokens"] + first["generated_tokens"]
    return {first["name"]: min(made - first["cached_tokens"], engine["most_tokens"])}
