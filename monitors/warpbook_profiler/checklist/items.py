"""The items of the checklist, in the order in which they are gone through."""

from __future__ import annotations

from collections.abc import Callable
from typing import NamedTuple

from warpbook_profiler.checklist.answers import Judgement, Part
from warpbook_profiler.checklist.facts import Facts
from warpbook_profiler.checklist.rules import (
    arithmetic,
    convolutions,
    input_data,
    launching,
    phases,
    profiling,
)


class Item(NamedTuple):
    """One question of the checklist."""

    #: what documents and labs call it
    name: str
    question: str
    rule: Callable[[Facts], Judgement]
    #: of what work it is
    part: Part = "any work"
    #: nothing can be said of it where no work of a GPU was recorded
    is_of_gpu: bool = True


ITEMS: tuple[Item, ...] = (
    Item(
        "profile-first",
        "Is it measured what holds the code back?",
        profiling.profile_first,
        is_of_gpu=False,
    ),
    Item(
        "debug-off",
        "Are settings for debugging off (anomaly mode, launch blocking)?",
        profiling.debug_off,
    ),
    Item(
        "loader-workers",
        "Do worker processes prepare the batches?",
        input_data.loader_workers,
        is_of_gpu=False,
    ),
    Item(
        "pinned-input",
        "Is input copied from pinned memory?",
        input_data.pinned_input,
    ),
    Item(
        "host-waits",
        "Does the host run ahead, without waits for the GPU?",
        launching.host_waits,
    ),
    Item(
        "batch-size",
        "Is the batch large enough to fill the GPU?",
        launching.batch_size,
    ),
    Item(
        "cuda-graphs",
        "Are short kernels launched together, as CUDA graphs?",
        launching.cuda_graphs,
    ),
    Item(
        "fusion",
        "Are chains of operations fused?",
        launching.fusion,
    ),
    Item(
        "tensor-cores",
        "Do products run on tensor cores?",
        arithmetic.tensor_cores,
    ),
    Item(
        "mixed-precision",
        "Are products in half precision (AMP)?",
        arithmetic.mixed_precision,
    ),
    Item(
        "alignment",
        "Are sizes multiples of eight?",
        arithmetic.alignment,
    ),
    Item(
        "cudnn-benchmark",
        "Does cuDNN measure its algorithms (cudnn.benchmark)?",
        convolutions.cudnn_benchmark,
        is_of_gpu=False,
    ),
    Item(
        "channels-last",
        "Are convolutions in channels_last?",
        convolutions.channels_last,
    ),
    Item(
        "checkpointing",
        "Are activations checkpointed where memory is short?",
        phases.checkpointing,
        part="training",
    ),
    Item(
        "fused-optimizer",
        "Does the optimizer update all tensors at once?",
        phases.fused_optimizer,
        part="training",
    ),
    Item(
        "gradients-to-none",
        "Are gradients dropped (zero_grad(set_to_none=True))?",
        phases.gradients_to_none,
        part="training",
    ),
    Item(
        "no-autograd",
        "Is autograd off (inference_mode, no_grad)?",
        phases.no_autograd,
        part="inference",
        is_of_gpu=False,
    ),
    Item(
        "eval-mode",
        "Is the model in eval mode?",
        phases.eval_mode,
        part="inference",
    ),
    Item(
        "low-precision",
        "Are products in 8 bits (FP8, INT8)?",
        arithmetic.low_precision,
        part="inference",
    ),
)
