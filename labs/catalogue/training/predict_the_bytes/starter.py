"""Predict the memory of a model. Fill in the six functions.

They are called with plain data, such as

    {"model_type": "llama", "num_hidden_layers": 32, "hidden_size": 4096,
     "num_attention_heads": 32, "num_key_value_heads": 8, "head_dim": 128,
     "intermediate_size": 14336, "vocab_size": 128256, "tie_word_embeddings": False}
    {"precision": "mixed", "optimizer": "adam", "batch": 2, "sequence": 4096,
     "flash": True, "recompute": False, "gpus": 8, "zero": 1}
    {"batch": 16, "tokens": 4000, "weights": "bf16", "cache": "fp16"}
"""


def parameters(config):
    """Count all parameters."""
    return 0


def state_bytes(config, training):
    """Give what stays on a GPU from step to step."""
    count = parameters(config)
    return {"weights": 4 * count, "gradients": 4 * count, "optimizer": 8 * count}


def activation_bytes(config, training):
    """Give what is kept for the backward pass."""
    return 0.0


def peak_bytes(config, training):
    """Give the most that a step has at once."""
    return sum(state_bytes(config, training).values()) + activation_bytes(
        config, training
    )


def kv_cache_bytes(config, serving):
    """Give the cache of a whole batch."""
    return 0.0


def sequences_that_fit(config, serving, room_bytes):
    """Count the sequences whose cache fits beside the weights."""
    return 0
