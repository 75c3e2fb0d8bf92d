# A table says what each workload wants, and the flags are set from its row.
import torch
from given import CHANGING, FIXED, HALF, REPEAT, batches, gradient

WANTED = {
    REPEAT: {"deterministic": True, "allow_tf32": False, "benchmark": False},
    FIXED: {"deterministic": False, "allow_tf32": True, "benchmark": True},
    CHANGING: {"deterministic": False, "allow_tf32": True, "benchmark": False},
    HALF: {"deterministic": False, "allow_tf32": True, "benchmark": True},
}


def prepare(workload, batches, images, channels, side):
    for name, value in WANTED[workload].items():
        setattr(torch.backends.cudnn, name, value)
    return workload == HALF


def run(is_half, x, filters, height, width, out):
    first = True
    if is_half:
        filters = filters.half().contiguous(memory_format=torch.channels_last)
    for images in batches(x, height, width):
        if is_half:
            images = images.to(torch.float16, memory_format=torch.channels_last)
        found = gradient(images, filters)
        if first:
            out.copy_(found)
        else:
            out += found
        first = False
