import torch
from given import CHANGING, HALF, REPEAT, batches, gradient


def prepare(workload, batches, images, channels, side):
    torch.use_deterministic_algorithms(workload == REPEAT)
    # tuned or not, a deterministic algorithm gives the same bits as itself
    torch.backends.cudnn.benchmark = workload != CHANGING
    torch.backends.cudnn.allow_tf32 = workload != REPEAT
    return workload == HALF


def run(is_half, x, filters, height, width, out):
    how = dict(dtype=torch.float16, memory_format=torch.channels_last)
    used = filters.to(**how) if is_half else filters
    first = True
    for images in batches(x, height, width):
        slopes = gradient(images.to(**how) if is_half else images, used)
        if first:
            out.copy_(slopes)
        else:
            out.add_(slopes)
        first = False
