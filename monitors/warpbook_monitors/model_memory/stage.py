"""What one GPU of a stage holds: its weights, and all it needs at the peak."""

from __future__ import annotations

import msgspec

from warpbook_monitors.model_memory.description import Block, Stored
from warpbook_monitors.model_memory.layer import divided
from warpbook_monitors.model_memory.layers import Embedding, Experts, Logits

#: of a stored weight, in 16ths of a bit. Quantized are matrices of layers, in mxfp4
#: those of experts: embeddings, norms, routers, biases and the head have 16 bits. int4
#: has 2 bits of scales for 16 weights (bitsandbytes' NF4, its scales in 8 bits: 64 have
#: one), mxfp4 8 for 32 (OCP Microscaling Formats 1.0); scales of others are few.
_SIXTEENTHS = {
    "fp32": 512,
    "bf16": 256,
    "fp16": 256,
    "fp8": 128,
    "int8": 128,
    "int4": 66,
    "mxfp4": 68,
}


class StageMemory(msgspec.Struct, frozen=True):
    """What one GPU of a stage needs in a step of training, or to serve a batch.

    Attributes:
        stage: from 0 on; 0 where there is no pipeline.
        parameters: of this GPU, before ZeRO splits them.
        micro_batches: in flight at most.
        needed: bytes of all that is needed, not all at once, by what it is.
        activations: those of them by kind of layer.
        held: bytes at the moment of the peak, by what they are.
        peak_bytes: their sum: the most that is needed at once.
        peak_block: in whose backward pass that is; None in the optimizer, and in
            inference.
    """

    stage: int
    parameters: int
    micro_batches: int
    needed: dict[str, int]
    activations: dict[str, int]
    held: dict[str, int]
    peak_bytes: int
    peak_block: str | None = None


def tied_logits(blocks: list[Block]) -> list[Logits]:
    """List the logits that take their matrix from the embedding."""
    layers = (layer for block in blocks for layer in block.layers)
    return [layer for layer in layers if isinstance(layer, Logits) and layer.tied]


def shared_matrix(layer: Logits, tensor: int) -> int:
    """Count the matrix that tied logits share, split by the vocabulary."""
    return divided(layer.vocabulary, tensor) * layer.hidden


def parameters_of(blocks: list[Block], tensor: int) -> int:
    """Count those of a stage on a tensor-parallel GPU.

    A stage without the embedding has a copy of a tied matrix, as in Megatron-LM
    (Narayanan et al. 2021, arXiv:2104.04473).
    """
    count = sum(block.parameters(tensor) for block in blocks)
    layers = (layer for block in blocks for layer in block.layers)
    if any(isinstance(layer, Embedding) for layer in layers):
        return count
    return count + sum(shared_matrix(layer, tensor) for layer in tied_logits(blocks))


def weights_bytes(blocks: list[Block], tensor: int, stored: Stored) -> int:
    count = parameters_of(blocks, tensor)
    if stored in ("fp32", "bf16", "fp16"):
        return count * _SIXTEENTHS[stored] // 128
    quantized = 0
    for block in blocks:
        for layer in block.layers:
            if stored != "mxfp4":
                quantized += block.times * layer.matrices(tensor)
            elif isinstance(layer, Experts):
                quantized += block.times * layer.expert_matrices(tensor)
    whole = 2 * (count - quantized)
    return whole + divided(quantized * _SIXTEENTHS[stored], 128)
