import torch
from given import CHANGING, HALF, REPEAT, batches, gradient


def prepare(workload, batches, images, channels, side):
    repeat = workload == REPEAT
    flags = {
        "enabled": True,
        "benchmark": workload != CHANGING and not repeat,
        "deterministic": repeat,
        "allow_tf32": not repeat,
    }
    return workload == HALF, flags


def run(state, x, filters, height, width, out):
    is_half, flags = state
    # the settings hold for these convolutions, and then what was before holds again
    with torch.backends.cudnn.flags(**flags):
        if is_half:
            filters = filters.half().contiguous(memory_format=torch.channels_last)
        total = torch.zeros_like(out)
        for images in batches(x, height, width):
            if is_half:
                images = images.to(torch.half, memory_format=torch.channels_last)
            total += gradient(images, filters)
    out.copy_(total)
