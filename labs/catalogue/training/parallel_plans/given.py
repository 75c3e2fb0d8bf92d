"""Data, tensor and sequence parallelism by hand, on real ranks, beside one device.

The layers are those of the text. Nothing here is graded.
"""

import runpy
import statistics
import time

import torch
import torch.distributed as dist
from torch.nn import functional as F

from warpbook_labs.ranks import run_on_ranks

#: a small model of the text's kind; `vocabulary` has no part in what is run
MODEL = {
    "layers": 2,
    "hidden": 256,
    "heads": 8,
    "kv_heads": 8,
    "head_size": 32,
    "intermediate": 512,
    "vocabulary": 1024,
    "sequence": 64,
}
BATCH, STEPS = 8, 5
#: dimensions along which a matrix is split: rows of what goes in, columns of what
#: comes out again, so that between the two nothing has to be sent
SPLIT = {"query": 0, "key": 0, "value": 0, "output": 1, "gate": 0, "up": 0, "down": 1}
NORMS = ("attention_norm", "mlp_norm")
#: the lab counts bytes of 16 bits; here numbers have 32, so that results compare
COUNTED_BYTES = 2
#: PyTorch 2.13 has other names for these two
GATHER, SCATTER = (
    getattr(dist, name, None) or getattr(dist, older_name)
    for name, older_name in (
        ("all_gather_single", "all_gather_into_tensor"),
        ("reduce_scatter_single", "reduce_scatter_tensor"),
    )
)


class Ring:
    """Collectives of a group, and the elements that a rank of a ring sends in them."""

    def __init__(self):
        """Begin with none sent."""
        self.ranks, self.sent = dist.get_world_size(), 0.0

    def all_reduce(self, x):
        """Sum up whole tensors."""
        self.sent += 2 * (self.ranks - 1) / self.ranks * x.numel()
        summed = x.clone(memory_format=torch.contiguous_format)
        dist.all_reduce(summed)
        return summed

    def all_gather(self, x):
        """Put the parts of all ranks one behind another, along the first dimension."""
        whole = x.new_empty(self.ranks * x.shape[0], *x.shape[1:])
        self.sent += (self.ranks - 1) / self.ranks * whole.numel()
        GATHER(whole, x.contiguous())
        return whole

    def reduce_scatter(self, x):
        """Sum up, and keep this rank's part of the first dimension."""
        self.sent += (self.ranks - 1) / self.ranks * x.numel()
        part = x.new_empty(x.shape[0] // self.ranks, *x.shape[1:])
        SCATTER(part, x.contiguous())
        return part


class Between(torch.autograd.Function):
    """One function forward, and another one for the gradient."""

    @staticmethod
    def forward(context, x, forward, backward):
        """Apply the first."""
        context.for_gradient = backward
        return forward(x)

    @staticmethod
    def backward(context, gradient):
        """Apply the second."""
        return context.for_gradient(gradient), None, None


def same(x):
    """Send nothing."""
    return x.view_as(x)


def edges(kind, ring):
    """Give what happens before and behind the split matrices of a layer."""
    forward, backward = {
        "tensor": (same, ring.all_reduce),
        "sequence": (ring.all_gather, ring.reduce_scatter),
    }.get(kind, (same, same))
    # behind them the same pair is turned around
    return (
        lambda x: Between.apply(x, forward, backward),
        lambda x: Between.apply(x, backward, forward),
    )


def layer(x, weights, head_size, enter, leave):
    """Apply attention and a gated MLP to `x`: tokens x batch x hidden."""
    y = enter(F.rms_norm(x, x.shape[-1:], weights["attention_norm"]))
    query, key, value = (
        # batch x heads x tokens x head size
        F.linear(y, weights[name]).unflatten(-1, (-1, head_size)).permute(1, 2, 0, 3)
        for name in ("query", "key", "value")
    )
    mixed = F.scaled_dot_product_attention(
        query, key, value, is_causal=True, enable_gqa=query.shape[1] != key.shape[1]
    )
    mixed = mixed.permute(2, 0, 1, 3).flatten(2)
    x = x + leave(F.linear(mixed, weights["output"]))
    y = enter(F.rms_norm(x, x.shape[-1:], weights["mlp_norm"]))
    gated = F.silu(F.linear(y, weights["gate"])) * F.linear(y, weights["up"])
    return x + leave(F.linear(gated, weights["down"]))


def made_weights(model, numbers):
    """Draw the weights of all layers, the same on every rank."""
    h, f, d = (model[name] for name in ("hidden", "intermediate", "head_size"))
    queries, keys = model["heads"] * d, model["kv_heads"] * d
    shapes = {"query": (queries, h), "key": (keys, h), "value": (keys, h)}
    shapes |= {"output": (h, queries), "gate": (f, h), "up": (f, h), "down": (h, f)}
    return [
        {name: torch.ones(h) for name in NORMS}
        | {
            name: torch.randn(shape, generator=numbers) * shape[1] ** -0.5
            for name, shape in shapes.items()
        }
        for _ in range(model["layers"])
    ]


def part_of(name, tensor, kind, rank, ranks):
    """Give this rank's part of a weight, or of its gradient."""
    if name in NORMS or kind not in ("tensor", "sequence"):
        return tensor
    return tensor.chunk(ranks, SPLIT[name])[rank].contiguous()


def step(kind, model, weights, x, target, ring, rank):
    """Go forward and back once; add up the gradients that ranks have parts of.

    Args:
        kind: "one device", "data", "tensor" or "sequence".
        model: as the lab's questions have it.
        weights: of each layer, this rank's parts.
        x: tokens x batch x hidden, the whole.
        target: as `x`.
        ring: counts what is sent.
        rank: of this process.
    """
    whole = x.numel()
    if kind == "data":
        x, target = (t.chunk(ring.ranks, 1)[rank] for t in (x, target))
    if kind == "sequence":
        x, target = (t.chunk(ring.ranks, 0)[rank] for t in (x, target))
    enter, leave = edges(kind, ring)
    for layer_weights in weights:
        x = layer(x, layer_weights, model["head_size"], enter, leave)
    ((x - target).square().sum() / whole).backward()
    for layer_weights in weights:
        for name, weight in layer_weights.items():
            # ranks with other sequences, or with other tokens of a norm
            if kind == "data" or (kind == "sequence" and name in NORMS):
                weight.grad = ring.all_reduce(weight.grad)


def on_rank(rank, device, model, batch):
    """Do a step in each way on one rank, and hold it against one device's."""
    ranks = dist.get_world_size()
    numbers = torch.Generator().manual_seed(1)
    drawn = made_weights(model, numbers)
    shape = (model["sequence"], batch, model["hidden"])
    x, target = (torch.randn(shape, generator=numbers).to(device) for _ in range(2))
    right, results = [], {}
    for kind in ("one device", "data", "tensor", "sequence"):
        weights = [
            {
                name: part_of(name, weight, kind, rank, ranks)
                .to(device, copy=True)
                .requires_grad_()
                for name, weight in layer_weights.items()
            }
            for layer_weights in drawn
        ]
        times_s = []
        for _ in range(STEPS):
            ring = Ring()
            for layer_weights in weights:
                for weight in layer_weights.values():
                    weight.grad = None
            dist.barrier()
            synchronize(device)
            begin_s = time.perf_counter()
            step(kind, model, weights, x, target, ring, rank)
            synchronize(device)
            times_s.append(time.perf_counter() - begin_s)
        gradients = [
            {name: weight.grad for name, weight in layer_weights.items()}
            for layer_weights in weights
        ]
        right = right or gradients
        error = torch.stack(
            [
                relative(mine, part_of(name, whole[name], kind, rank, ranks))
                for whole, layer_gradients in zip(right, gradients, strict=True)
                for name, mine in layer_gradients.items()
            ]
        ).max()
        dist.all_reduce(error, dist.ReduceOp.MAX)
        results[kind] = {
            "error": error.item(),
            "sent_bytes": ring.sent * COUNTED_BYTES,
            "seconds": statistics.median(times_s),
        }
    return results


def synchronize(device):
    """Wait for a GPU; a CPU is done when a call returns."""
    if device.type == "cuda":
        torch.cuda.synchronize(device)


def relative(mine, right):
    """Give the norm of the difference over that of what is right."""
    return (mine - right).norm() / right.norm()


def measure(ranks=None, source="answers.py", model=MODEL, batch=BATCH):
    """Run a step in each way on so many ranks; all GPUs, or two on the CPU.

    Returns:
        By kind: `error`, the largest relative difference of a gradient from that of
        one device; `sent_bytes` as counted, and `predicted_bytes`, which `sent_bytes`
        of the source says; `seconds` of a step.
    """
    answers = runpy.run_path(source)
    ranks = ranks or max(2, torch.cuda.device_count())
    results = run_on_ranks(on_rank, ranks, model, batch)
    for kind, result in results.items():
        is_split, has_replicas = kind in ("tensor", "sequence"), kind == "data"
        plan = {
            "tensor": ranks if is_split else 1,
            "pipeline": 1,
            "data": ranks if has_replicas else 1,
            "chunks": 1,
            "micro_batch": batch // ranks if has_replicas else batch,
            "sequence_parallel": int(kind == "sequence"),
            "sharded_optimizer": 0,
            "recompute": 0,
        }
        sent = answers["sent_bytes"](model, batch, plan)
        result["predicted_bytes"] = sent["tensor"] + sent["data"]
    return results


def table(results):
    """Write what was measured as text."""
    lines = [
        f"{'':<12}{'error':>10}{'bytes sent':>14}{'as predicted':>14}{'ms a step':>11}"
    ]
    lines += [
        f"{kind:<12}{result['error']:>10.1e}{result['sent_bytes']:>14,.0f}"
        f"{result['predicted_bytes']:>14,.0f}{result['seconds'] * 1e3:>11.2f}"
        for kind, result in results.items()
    ]
    return "\n".join(lines)
