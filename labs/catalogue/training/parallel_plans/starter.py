"""Plan the training of a model. Fill in the five functions.

They are called with plain data, such as

    {"layers": 32, "hidden": 4096, "heads": 32, "kv_heads": 8, "head_size": 128,
     "intermediate": 14336, "vocabulary": 128256, "sequence": 8192}
    {"gpus": 16, "gpus_per_node": 8, "room_bytes": 72000000000,
     "flops_per_s": 400000000000000, "layer_overhead_s": 0.0001,
     "node_bytes_per_s": 450000000000, "node_latency_s": 4e-06,
     "network_bytes_per_s": 50000000000, "network_latency_s": 2e-05}
"""


def bubble_share(stages, chunks, micro_batches):
    """Give the part of a step in which a GPU waits."""
    return 0.0


def memory_bytes(model, batch, plan):
    """Give what the fullest GPU holds."""
    return 0.0


def sent_bytes(model, batch, plan):
    """Give what a GPU sends in a step, by kind of group."""
    return {"tensor": 0.0, "pipeline": 0.0, "data": 0.0}


def step_s(model, cluster, batch, plan):
    """Give the time of a step."""
    return 0.0


def plan(model, cluster, batch):
    """Return the fastest plan that fits. This one shares every layer among a node."""
    tensor = min(cluster["gpus_per_node"], cluster["gpus"])
    return {
        "tensor": tensor,
        "pipeline": 1,
        "data": cluster["gpus"] // tensor,
        "chunks": 1,
        "micro_batch": 1,
        "sequence_parallel": 0,
        "sharded_optimizer": 0,
        "recompute": 0,
    }
