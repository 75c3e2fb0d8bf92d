# A record of all sizes, and one list of what is there at each moment
from dataclasses import dataclass


@dataclass(frozen=True)
class Sizes:
    layers: int
    h: int
    q: int
    kv: int
    f: int
    v: int
    heads: int
    bias: bool
    tied: bool

    @property
    def layer(self):
        attention = 2 * self.h * self.q + 2 * self.h * self.kv
        if self.bias:
            attention += self.q + 2 * self.kv
        return attention + 3 * self.h * self.f + 2 * self.h

    @property
    def table(self):
        return self.h * self.v

    @property
    def total(self):
        head = 0 if self.tied else self.table
        return self.table + self.layers * self.layer + self.h + head


def read(config):
    size = config["head_dim"]
    return Sizes(
        config["num_hidden_layers"],
        config["hidden_size"],
        config["num_attention_heads"] * size,
        config["num_key_value_heads"] * size,
        config["intermediate_size"],
        config["vocab_size"],
        config["num_attention_heads"],
        config["model_type"] == "qwen2",
        config["tie_word_embeddings"],
    )


def widths(training):
    """Give bytes of weight, copy, gradient, states, master, activation, norm."""
    kind = training["precision"]
    each = {"sgd": 0, "momentum": 1, "adam": 2}[training["optimizer"]]
    full = 2 if kind == "bf16" else 4
    weight = 2 if kind in ("bf16", "mixed") else 4
    return {
        "weight": weight,
        "copy": 2 if kind == "autocast" else 0,
        "gradient": weight,
        "states": each * full,
        "temporary": full if each == 2 else 0,
        "master": 4 if kind == "mixed" else 0,
        "e": 4 if kind == "fp32" else 2,
        "norm": 4 if kind in ("fp32", "autocast") else 2,
    }


def parameters(config):
    return read(config).total


def state_bytes(config, training):
    w, total = widths(training), read(config).total
    parts = [1] * 4
    for stage in range(1, training["zero"] + 1):
        parts[stage] = training["gpus"]
    return {
        "weights": total * (w["weight"] + w["copy"]) / parts[3],
        "gradients": total * w["gradient"] / parts[2],
        "optimizer": total * (w["states"] + w["master"]) / parts[1],
    }


def layer_bytes(config, training):
    z, w, s = read(config), widths(training), training["sequence"]
    if training["flash"]:
        softmax = 4 * z.heads
    else:
        softmax = w["e"] * z.heads * s
    inside = w["e"] * (2 * z.h + 2 * z.q + 2 * z.kv + 4 * z.f)
    norms = 2 * w["norm"] * z.h + 8
    return training["batch"] * s * (inside + norms + softmax)


def activation_bytes(config, training):
    z, w = read(config), widths(training)
    tokens = training["batch"] * training["sequence"]
    begins = w["norm"] * tokens * z.h
    ends = 8 * tokens + begins + 4 * tokens + w["e"] * tokens * z.h
    each = begins if training["recompute"] else layer_bytes(config, training)
    return ends + z.layers * each


def peak_bytes(config, training):
    z, w = read(config), widths(training)
    tokens = training["batch"] * training["sequence"]
    states = state_bytes(config, training)
    always = states["weights"] + states["optimizer"]
    kept = activation_bytes(config, training)
    layer = layer_bytes(config, training)
    begins = w["norm"] * tokens * z.h
    attention = 2 * (z.q + z.kv)
    if not training["flash"]:
        attention += 2 * z.heads * training["sequence"]
    work = w["e"] * tokens * (2 * z.h + max(3 * z.f, attention))
    freed = layer
    if training["recompute"]:
        work += layer - begins
        freed = begins
    others = z.layers - 1
    gradients = w["gradient"] * (z.table + others * z.layer)
    head = kept + (w["e"] + 12) * tokens * z.v
    last = kept + work + w["gradient"] * z.table
    first = kept - others * freed + work + gradients
    step = z.total * (w["gradient"] + w["master"] + w["temporary"] - w["copy"])
    return always + max(head, last, first, step)


def kv_cache_bytes(config, serving):
    z = read(config)
    a_number = 1 if serving["cache"] == "fp8" else 2
    return 2.0 * z.kv * a_number * z.layers * serving["batch"] * serving["tokens"]


def sequences_that_fit(config, serving, room_bytes):
    full = serving["tokens"] // 16 * 16
    whole = full if full == serving["tokens"] else full + 16
    one = kv_cache_bytes(config, dict(serving, batch=1, tokens=whole))
    divisor = {"bf16": 0.5, "int8": 1, "int4": 2}[serving["weights"]]
    return max(int((room_bytes - read(config).total / divisor) / one), 0)
