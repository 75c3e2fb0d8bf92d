"""An image encoder in plain PyTorch, and a table of ways to run it."""

import statistics

import torch
from torch import nn
from torch.nn import functional as F

#: that of ViT-B on images of 512 x 512; on a CPU one that takes milliseconds
ON_GPU = {"image": 512, "width": 768, "depth": 12, "heads": 12, "images": 16}
ON_CPU = {"image": 64, "width": 64, "depth": 2, "heads": 4, "images": 8}
PATCH = 16


def by_hand(query, key, value):
    """Attention in three steps, each of which reads and writes all scores."""
    scores = query @ key.transpose(-1, -2) * query.shape[-1] ** -0.5
    return scores.softmax(-1) @ value


#: the same in one kernel, which keeps no scores
fused = F.scaled_dot_product_attention


class Block(nn.Module):
    """Attention and an MLP, each behind a LayerNorm."""

    def __init__(self, width, heads):
        """Make the matrices; attention is by hand."""
        super().__init__()
        self.heads, self.attend = heads, by_hand
        self.attention_norm, self.mlp_norm = nn.LayerNorm(width), nn.LayerNorm(width)
        self.inputs = nn.Linear(width, 3 * width)
        self.output = nn.Linear(width, width)
        self.up = nn.Linear(width, 4 * width)
        self.down = nn.Linear(4 * width, width)

    def forward(self, x):
        """Give the next hidden states: images x patches x width."""
        inputs = self.inputs(self.attention_norm(x)).unflatten(-1, (3, self.heads, -1))
        query, key, value = inputs.permute(2, 0, 3, 1, 4)
        mixed = self.attend(query, key, value)
        x = x + self.output(mixed.transpose(1, 2).flatten(2))
        return x + self.down(F.gelu(self.up(self.mlp_norm(x))))


class Encoder(nn.Module):
    """A vision transformer with random weights."""

    def __init__(self, size):
        """Make all blocks."""
        super().__init__()
        width, patches = size["width"], (size["image"] // PATCH) ** 2
        self.patches = nn.Conv2d(3, width, PATCH, stride=PATCH)
        self.places = nn.Parameter(torch.randn(patches, width) * 0.02)
        self.blocks = nn.ModuleList(
            Block(width, size["heads"]) for _ in range(size["depth"])
        )
        self.norm = nn.LayerNorm(width)

    def forward(self, images):
        """Give an embedding of each patch: images x patches x width."""
        x = self.patches(images.to(self.places.dtype)).flatten(2).transpose(1, 2)
        x = x + self.places
        for block in self.blocks:
            x = block(x)
        return self.norm(x)


class Int8Linear(nn.Module):
    """A linear layer whose product is of whole numbers of 8 bits.

    Weights have a scale for each output, inputs one for each row, made as they come.
    """

    def __init__(self, linear):
        """Round the weights of a linear layer."""
        super().__init__()
        weight = linear.weight.detach()
        scale = weight.abs().amax(1, keepdim=True).float() / 127
        self.register_buffer("weight", (weight / scale).round().to(torch.int8))
        self.register_buffer("scale", scale.T.contiguous())
        self.bias = linear.bias

    def forward(self, x):
        """Give the product in the type of the input."""
        rows = x.flatten(0, -2)
        scale = (rows.abs().amax(1, keepdim=True).float() / 127).clamp(min=1e-12)
        rounded = (rows / scale).round().to(torch.int8)
        product = torch._int_mm(rounded, self.weight.T)
        scaled = (product * scale * self.scale).to(x.dtype) + self.bias
        return scaled.unflatten(0, x.shape[:-1])


def with_int8(model):
    """Put INT8 in the place of all linear layers; change the model and return it."""
    for block in model.blocks:
        for name in ("inputs", "output", "up", "down"):
            setattr(block, name, Int8Linear(getattr(block, name)))
    return model


def pruned(model, sparse):
    """Keep the two largest of each four weights of an input; change the model.

    Args:
        model: an encoder.
        sparse: store what is left as sparse tensor cores read it, or with zeros.
    """
    for block in model.blocks:
        for name in ("inputs", "output", "up", "down"):
            linear = getattr(block, name)
            fours = linear.weight.detach().unflatten(1, (-1, 4))
            smallest = fours.abs().argsort(-1)[..., :2]
            weight = fours.scatter(-1, smallest, 0).flatten(1)
            if sparse:
                weight = torch.sparse.to_sparse_semi_structured(weight)
            linear.weight = nn.Parameter(weight, requires_grad=False)
    return model


class Ladder:
    """The model, its images, and what was measured of each rung."""

    def __init__(self, size=None):
        """Make the model and images: on the first GPU, or small ones on the CPU."""
        self.on_gpu = torch.cuda.is_available()
        self.size = size or (ON_GPU if self.on_gpu else ON_CPU)
        device = "cuda" if self.on_gpu else "cpu"
        torch.manual_seed(0)
        # none is trained, and sparse weights have no gradients
        self.model = Encoder(self.size).to(device).eval().requires_grad_(False)
        shape = (self.size["images"], 3, self.size["image"], self.size["image"])
        self.images = torch.randn(shape, device=device)
        self.batch = self.size["images"] // 2
        self.rungs, self.right = {}, None

    def run(self, model, batch):
        """Encode all images, so many at a time."""
        with torch.no_grad():
            return torch.cat([model(images) for images in self.images.split(batch)])

    def add(self, name, profile, outputs, after=None):
        """Take a rung: bare times and verdict of its profile, and its outputs.

        Args:
            name: of the rung.
            profile: what `%gpuprof -r` made.
            outputs: what its code gave; those of the first rung are right.
            after: the rung that it changes; none for the first one.

        Returns:
            This ladder, which shows its table.
        """
        self.right = outputs.float() if self.right is None else self.right
        difference = (outputs.float() - self.right).norm() / self.right.norm()
        images = self.size["images"]
        verdict = profile.verdict
        self.rungs[name] = {
            "image_s": statistics.median(profile.repeats.bare_ns) / 1e9 / images,
            "after": after,
            "error": difference.item(),
            "verdict": verdict.kind if verdict else "no verdict",
        }
        return self

    def leave_out(self, name, why):
        """Note why a rung is not measured here."""
        self.rungs[name] = {"why": why}
        return self

    def __repr__(self):
        """Write the table."""
        lines = [
            f"{'rung':<12}{'ms an image':>12}{'speed-up':>10}{'of it':>9} "
            f"{'beside':<9}{'error':>9}  held back by"
        ]
        first_s = next(iter(self.rungs.values()), {}).get("image_s")
        for name, rung in self.rungs.items():
            if "why" in rung:
                lines.append(f"{name:<12}not measured: {rung['why']}")
                continue
            beside_s = self.rungs.get(rung["after"], rung)["image_s"]
            lines.append(
                f"{name:<12}{rung['image_s'] * 1e3:>12.3f}"
                f"{first_s / rung['image_s']:>8.2f} x"
                f"{beside_s / rung['image_s']:>7.2f} x "
                f"{rung['after'] or '':<9}{rung['error']:>9.1e}  {rung['verdict']}"
            )
        return "\n".join(lines)
