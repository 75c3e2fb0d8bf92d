# every tensor is a row: what it is, how many elements, and when it is there
WIDTHS = {
    "fp32": dict(weight=4, copy=0, gradient=4, state=4, master=0, e=4, norm=4),
    "bf16": dict(weight=2, copy=0, gradient=2, state=2, master=0, e=2, norm=2),
    "mixed": dict(weight=2, copy=0, gradient=2, state=4, master=4, e=2, norm=2),
    "autocast": dict(weight=4, copy=2, gradient=4, state=4, master=0, e=2, norm=4),
}
NUMBER_OF_STATES = dict(sgd=0, momentum=1, adam=2)


def names(config):
    return (
        config["hidden_size"],
        config["intermediate_size"],
        config["num_attention_heads"] * config["head_dim"],
        config["num_key_value_heads"] * config["head_dim"],
    )


def matrices(config):
    h, f, q, kv = names(config)
    rows = [(h, q), (h, kv), (h, kv), (q, h), (h, f), (h, f), (f, h), (2, h)]
    if config["model_type"] == "qwen2":
        rows += [(1, q), (1, kv), (1, kv)]
    return rows


def layer_count(config):
    return sum(rows * columns for rows, columns in matrices(config))


def parameters(config):
    h = config["hidden_size"]
    outside = [config["vocab_size"] * h, h]
    if not config["tie_word_embeddings"]:
        outside.append(config["vocab_size"] * h)
    return config["num_hidden_layers"] * layer_count(config) + sum(outside)


def state_bytes(config, training):
    width, whole = WIDTHS[training["precision"]], parameters(config)
    part = whole / training["gpus"]
    zero = training["zero"]
    states = NUMBER_OF_STATES[training["optimizer"]] * width["state"]
    return {
        "weights": (part if zero == 3 else whole) * (width["weight"] + width["copy"]),
        "gradients": (part if zero > 1 else whole) * width["gradient"],
        "optimizer": (part if zero else whole) * (states + width["master"]),
    }


def layer_tensors(config, training):
    h, f, q, kv = names(config)
    width = WIDTHS[training["precision"]]
    s, heads = training["sequence"], config["num_attention_heads"]
    rows = [(width["norm"], 2 * h), (4, 2)]
    rows += [(width["e"], each) for each in (h, q, q, kv, kv, h, f, f, f, f)]
    rows += [(4, heads)] if training["flash"] else [(width["e"], heads * s)]
    return rows


def layer_bytes(config, training):
    tokens = training["batch"] * training["sequence"]
    return tokens * sum(size * count for size, count in layer_tensors(config, training))


def activation_bytes(config, training):
    h, width = config["hidden_size"], WIDTHS[training["precision"]]
    tokens = training["batch"] * training["sequence"]
    layer = layer_bytes(config, training)
    if training["recompute"]:
        layer = tokens * width["norm"] * h
    ends = tokens * (8 + 4 + width["norm"] * h + width["e"] * h)
    return config["num_hidden_layers"] * layer + ends


def peak_bytes(config, training):
    h, f, q, kv = names(config)
    width, tokens = (
        WIDTHS[training["precision"]],
        training["batch"] * training["sequence"],
    )
    count, layers = parameters(config), config["num_hidden_layers"]
    held = state_bytes(config, training)
    base = held["weights"] + held["optimizer"]
    kept = activation_bytes(config, training)
    moments = [base + kept + tokens * config["vocab_size"] * (width["e"] + 12)]

    scores = 0 if training["flash"] else 2 * config["num_attention_heads"]
    inner = max(3 * f, scores * training["sequence"] + 2 * (q + kv)) + 2 * h
    own = width["e"] * tokens * inner
    one = layer_bytes(config, training)
    if training["recompute"]:
        own += one - tokens * width["norm"] * h
        one = tokens * width["norm"] * h
    behind = width["gradient"] * config["vocab_size"] * h
    for done in range(layers):
        gradients = behind + done * width["gradient"] * layer_count(config)
        moments.append(base + kept - done * one + own + gradients)

    temporary = width["master"] - width["copy"]
    temporary += width["state"] if training["optimizer"] == "adam" else 0
    moments.append(base + held["gradients"] + count * temporary)
    return max(moments)


def a_token(config, serving):
    size = {"fp16": 2, "fp8": 1}[serving["cache"]]
    return size * config["num_hidden_layers"] * 2 * names(config)[3]


def kv_cache_bytes(config, serving):
    return float(a_token(config, serving) * serving["tokens"] * serving["batch"])


def sequences_that_fit(config, serving, room_bytes):
    weights = {"bf16": 4, "int8": 2, "int4": 1}[serving["weights"]]
    room = room_bytes - parameters(config) * weights / 2
    block = 16 * a_token(config, serving)
    blocks = room // block
    return max(0, int(blocks // ((serving["tokens"] + 15) // 16)))
