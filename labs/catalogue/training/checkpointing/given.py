"""Blocks in PyTorch, what they save and compute, and a step that follows a plan."""

import weakref

import torch
from torch import nn
from torch.utils._python_dispatch import TorchDispatchMode
from torch.utils._pytree import tree_leaves
from torch.utils.checkpoint import checkpoint
from torch.utils.flop_counter import FlopCounterMode

MIB = 2**20


def chain(inner, hidden=512, tokens=1024, device="cpu"):
    """Make MLPs in a row, each with its own inner size, and an input for them."""
    blocks = [
        nn.Sequential(nn.Linear(hidden, size), nn.GELU(), nn.Linear(size, hidden))
        for size in inner
    ]
    x = torch.randn(tokens, hidden, device=device, requires_grad=True)
    return [block.to(device) for block in blocks], x


def measure(blocks, x):
    """Give each block as `plan` gets it, in fractions of MiB and GFLOP."""
    return [_measured(block, x) for block in blocks]


def run(blocks, x, segments):
    """Run a step with a plan; give what it held and what it computed again."""
    figures = {"extra_gflop": _gflop(blocks, x, segments) - _gflop(blocks, x, [])}
    if x.is_cuda:
        torch.cuda.synchronize()
        torch.cuda.reset_peak_memory_stats()
        before = torch.cuda.memory_allocated()
        gradients(blocks, x, segments)
        peak = torch.cuda.max_memory_allocated() - before
        figures["allocated_mib"] = peak / MIB
    with _Activations(x, _weights(blocks)) as activations:
        gradients(blocks, x, segments)
    return {"activations_mib": activations.most_bytes / MIB, **figures}


def gradients(blocks, x, segments):
    """Go forward and back with a plan; give gradients of the input and all weights."""
    y, done = x, 0
    for first, end in segments:
        y = nn.Sequential(*blocks[done:first])(y)
        y = checkpoint(nn.Sequential(*blocks[first:end]), y, use_reentrant=False)
        done = end
    y = nn.Sequential(*blocks[done:])(y)
    leaves = [x, *_weights(blocks)]
    with torch.no_grad():
        ones = torch.ones_like(y)
    # not `autograd.grad`: the counter of operations has hooks that it refuses
    y.backward(ones)
    grads = [leaf.grad for leaf in leaves]
    for leaf in leaves:
        leaf.grad = None
    return grads


def _gflop(blocks, x, segments):
    with FlopCounterMode(display=False) as counter:
        gradients(blocks, x, segments)
    return counter.get_total_flops() / 1e9


def _measured(block, x):
    saved = {}
    weights = {weight.untyped_storage().data_ptr() for weight in _weights([block])}

    def note(tensor):
        storage = tensor.untyped_storage()
        if storage.data_ptr() not in weights:
            saved[storage.data_ptr()] = storage.nbytes()
        return tensor

    # the output is held, so that no address is seen twice
    with FlopCounterMode(display=False) as forward:
        with torch.autograd.graph.saved_tensors_hooks(note, lambda tensor: tensor):
            _output = block(x)
    whole_gflop = forward.get_total_flops() / 1e9
    extra_gflop = _gflop([block], x, [[0, 1]]) - _gflop([block], x, [])
    return {
        "input_mib": x.untyped_storage().nbytes() / MIB,
        "saved_mib": sum(saved.values()) / MIB,
        "gflop": whole_gflop,
        "tail_gflop": whole_gflop - extra_gflop,
    }


def _weights(blocks):
    return [weight for block in blocks for weight in block.parameters()]


class _Activations(TorchDispatchMode):
    """Counts what the forward pass and recomputation have made and still hold."""

    def __init__(self, x, weights):
        super().__init__()
        self.now_bytes = self.most_bytes = x.untyped_storage().nbytes()
        self.seen = {tensor.untyped_storage()._cdata for tensor in (x, *weights)}

    def __torch_dispatch__(self, function, types, args=(), kwargs=None):
        made = function(*args, **(kwargs or {}))
        # gradients are computed with `grad` off
        if torch.is_grad_enabled():
            for tensor in tree_leaves(made):
                if isinstance(tensor, torch.Tensor):
                    self._add(tensor.untyped_storage())
        return made

    def _add(self, storage):
        key = storage._cdata
        if key in self.seen:
            return
        self.seen.add(key)
        self.now_bytes += storage.nbytes()
        self.most_bytes = max(self.most_bytes, self.now_bytes)
        weakref.finalize(storage, self._drop, key, storage.nbytes())

    def _drop(self, key, size_bytes):
        self.seen.discard(key)
        self.now_bytes -= size_bytes
