"""A decoder in plain PyTorch, to hold predictions against what its allocator counts."""

import contextlib

import torch
from torch import nn
from torch.nn import functional as F
from torch.utils.checkpoint import checkpoint


class Layer(nn.Module):
    """Attention and a gated MLP, each behind an RMSNorm."""

    def __init__(self, config, flash):
        """Make the matrices of a layer."""
        super().__init__()
        h, f, d = (config[k] for k in ("hidden_size", "intermediate_size", "head_dim"))
        a, k = config["num_attention_heads"], config["num_key_value_heads"]
        bias = config["model_type"] == "qwen2"
        self.size, self.flash, self.groups = d, flash, a // k
        self.norms = nn.ModuleList([nn.RMSNorm(h), nn.RMSNorm(h)])
        self.query = nn.Linear(h, a * d, bias=bias)
        self.key = nn.Linear(h, k * d, bias=bias)
        self.value = nn.Linear(h, k * d, bias=bias)
        self.output = nn.Linear(a * d, h, bias=False)
        self.gate = nn.Linear(h, f, bias=False)
        self.up = nn.Linear(h, f, bias=False)
        self.down = nn.Linear(f, h, bias=False)

    def attend(self, x):
        """Mix tokens: batch x tokens x hidden, as the input."""
        query, key, value = (
            product(x).unflatten(-1, (-1, self.size)).transpose(1, 2)
            for product in (self.query, self.key, self.value)
        )
        if self.flash:
            mixed = F.scaled_dot_product_attention(
                query, key, value, is_causal=True, enable_gqa=self.groups > 1
            )
        else:
            key, value = (
                tensor.repeat_interleave(self.groups, 1) for tensor in (key, value)
            )
            scores = query @ key.transpose(-1, -2) * self.size**-0.5
            mixed = F.softmax(scores, -1) @ value
        return self.output(mixed.transpose(1, 2).flatten(2))

    def forward(self, x):
        """Give the next hidden states: batch x tokens x hidden."""
        x = x + self.attend(self.norms[0](x))
        y = self.norms[1](x)
        return x + self.down(F.silu(self.gate(y)) * self.up(y))


class Decoder(nn.Module):
    """A language model without positions, which have no parameters here."""

    def __init__(self, config, flash=True, recompute=False):
        """Make all layers."""
        super().__init__()
        hidden, vocabulary = config["hidden_size"], config["vocab_size"]
        self.recompute = recompute
        self.table = nn.Embedding(vocabulary, hidden)
        depth = config["num_hidden_layers"]
        self.layers = nn.ModuleList([Layer(config, flash) for _ in range(depth)])
        self.norm = nn.RMSNorm(hidden)
        self.logits = nn.Linear(hidden, vocabulary, bias=False)
        if config["tie_word_embeddings"]:
            self.logits.weight = self.table.weight

    def forward(self, tokens):
        """Give logits: batch x tokens x vocabulary."""
        x = self.table(tokens)
        for layer in self.layers:
            x = (
                checkpoint(layer, x, use_reentrant=False)
                if self.recompute
                else layer(x)
            )
        return self.logits(self.norm(x))


OPTIMIZERS = {
    "sgd": lambda weights: torch.optim.SGD(weights, lr=1e-4),
    "momentum": lambda weights: torch.optim.SGD(weights, lr=1e-4, momentum=0.9),
    "adam": lambda weights: torch.optim.Adam(weights, lr=1e-4),
}


def counted(config):
    """Count parameters on the meta device, which has shapes and no memory."""
    with torch.device("meta"):
        return sum(parameter.numel() for parameter in Decoder(config).parameters())


def run(config, training, device, steps=2):
    """Train on random tokens; give the loss of the last step."""
    dtype = torch.bfloat16 if training["precision"] == "bf16" else torch.float32
    model = Decoder(config, training["flash"], training["recompute"]).to(device, dtype)
    optimizer = OPTIMIZERS[training["optimizer"]](model.parameters())
    shape = (training["batch"], training["sequence"])
    for _ in range(steps):
        tokens = torch.randint(config["vocab_size"], shape, device=device)
        casts = contextlib.nullcontext()
        if training["precision"] == "autocast":
            casts = torch.autocast(torch.device(device).type, torch.bfloat16)
        with casts:
            logits = model(tokens)
            loss = F.cross_entropy(logits.flatten(0, 1).float(), tokens.flatten())
        loss.backward()
        optimizer.step()
        optimizer.zero_grad()
    return loss.item()


def measure(config, training):
    """Count parameters, and on a GPU the bytes at the peak of a step of training."""
    counts = {"parameters": counted(config)}
    if not torch.cuda.is_available():
        return {**counts, "peak_bytes": "not measured: there is no GPU"}
    if training["precision"] == "mixed":
        return {
            **counts,
            "peak_bytes": "not measured: torch has no FP32 weights beside",
        }
    torch.cuda.reset_peak_memory_stats()
    before = torch.cuda.memory_allocated()
    run(config, training, "cuda")
    return {**counts, "peak_bytes": torch.cuda.max_memory_allocated() - before}
