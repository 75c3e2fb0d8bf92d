# the peak is some percent too large, as a planner would: the tolerance has room

BITS = {"bf16": 16, "fp16": 16, "fp8": 8, "int8": 8, "int4": 4}
#: bytes of weight, its copy, gradient, optimizer state, FP32 master; of an activation,
#: and of what a norm reads
WIDTHS = {
    "fp32": (4, 0, 4, 4, 0, 4, 4),
    "bf16": (2, 0, 2, 2, 0, 2, 2),
    "mixed": (2, 0, 2, 4, 4, 2, 2),
    "autocast": (4, 2, 4, 4, 0, 2, 4),
}
STATES = {"sgd": 0, "momentum": 1, "adam": 2}


def of_layer(config):
    """Count the parameters of one layer."""
    h, f, d = (config[key] for key in ("hidden_size", "intermediate_size", "head_dim"))
    a, k = config["num_attention_heads"], config["num_key_value_heads"]
    biases = (a + 2 * k) * d if config["model_type"] == "qwen2" else 0
    return 2 * h * (a + k) * d + 3 * h * f + 2 * h + biases


def parameters(config):
    table = config["vocab_size"] * config["hidden_size"]
    tables = table if config["tie_word_embeddings"] else 2 * table
    layers = config["num_hidden_layers"] * of_layer(config)
    return layers + tables + config["hidden_size"]


def state_bytes(config, training):
    weight, copy, gradient, state, master, _, _ = WIDTHS[training["precision"]]
    count = parameters(config)

    def on_a_gpu(stage):
        return count / training["gpus"] if training["zero"] >= stage else count

    return {
        "weights": (weight + copy) * on_a_gpu(3),
        "gradients": gradient * on_a_gpu(2),
        "optimizer": (master + STATES[training["optimizer"]] * state) * on_a_gpu(1),
    }


def kept_of_layer(config, training):
    e, norm = WIDTHS[training["precision"]][-2:]
    h, f, d = (config[key] for key in ("hidden_size", "intermediate_size", "head_dim"))
    a, k = config["num_attention_heads"], config["num_key_value_heads"]
    s = training["sequence"]
    tokens = training["batch"] * s
    norms = 2 * tokens * (norm * h + 4)
    scores = 4 * a * tokens if training["flash"] else e * a * s * tokens
    attention = e * tokens * (h + 2 * (a + k) * d) + scores
    mlp = e * tokens * (h + 4 * f)
    return norms + attention + mlp


def activation_bytes(config, training):
    e, norm = WIDTHS[training["precision"]][-2:]
    h, tokens = config["hidden_size"], training["batch"] * training["sequence"]
    edges = 8 * tokens + tokens * (norm * h + 4) + e * tokens * h
    layer = kept_of_layer(config, training)
    if training["recompute"]:
        layer = norm * tokens * h
    return edges + config["num_hidden_layers"] * layer


def within_layer(config, training):
    """Give what the largest part of a layer's backward pass needs for itself."""
    e = WIDTHS[training["precision"]][-2]
    h, f, d = (config[key] for key in ("hidden_size", "intermediate_size", "head_dim"))
    a, k = config["num_attention_heads"], config["num_key_value_heads"]
    s = training["sequence"]
    tokens = training["batch"] * s
    scores = 0 if training["flash"] else 2 * a * s
    attention = e * tokens * (scores + 2 * (a + k) * d + 2 * h)
    return max(attention, e * tokens * (3 * f + 2 * h))


def peak_bytes(config, training):
    _, copy, gradient, state, master, e, norm = WIDTHS[training["precision"]]
    count, held = parameters(config), state_bytes(config, training)
    tokens = training["batch"] * training["sequence"]
    resident = held["weights"] + held["optimizer"]
    kept = activation_bytes(config, training)

    logits = (e + 12) * tokens * config["vocab_size"]
    at_the_head = resident + kept + logits

    at_the_last_layer = resident + kept + within_layer(config, training)
    table = config["vocab_size"] * config["hidden_size"]
    at_the_last_layer += gradient * table
    layers = config["num_hidden_layers"] - 1
    one = kept_of_layer(config, training)
    input_bytes = norm * tokens * config["hidden_size"]
    again = one - input_bytes if training["recompute"] else 0
    at_the_last_layer += again
    left = input_bytes if training["recompute"] else one
    at_the_first_layer = at_the_last_layer - layers * left
    at_the_first_layer += layers * gradient * of_layer(config)

    in_the_optimizer = resident + held["gradients"] + (master - copy) * count
    if training["optimizer"] == "adam":
        in_the_optimizer += state * count
    moments = (at_the_head, at_the_last_layer, at_the_first_layer, in_the_optimizer)
    return 1.05 * max(moments)


def kv_cache_bytes(config, serving):
    width = config["num_key_value_heads"] * config["head_dim"]
    elements = 2 * config["num_hidden_layers"] * width
    return elements * serving["tokens"] * serving["batch"] * BITS[serving["cache"]] / 8


def sequences_that_fit(config, serving, room_bytes):
    blocks = -(-serving["tokens"] // 16)
    each = kv_cache_bytes(config, {**serving, "batch": 1, "tokens": 16 * blocks})
    weights = parameters(config) * BITS[serving["weights"]] / 8
    return max(0, int((room_bytes - weights) // each))
