# all images are converted at once, but nobody turns them, so cuDNN does
import torch
from given import FIXED, HALF, REPEAT, batches, gradient


def prepare(workload, batches, images, channels, side):
    cudnn = torch.backends.cudnn
    # trying algorithms pays where a shape comes again
    cudnn.benchmark = workload in (FIXED, HALF)
    cudnn.deterministic = workload == REPEAT
    cudnn.allow_tf32 = workload != REPEAT
    return workload


def run(workload, x, filters, height, width, out):
    if workload == HALF:
        filters = filters.half().contiguous(memory_format=torch.channels_last)
        x = x.half()
    out.zero_()
    for images in batches(x, height, width):
        out.add_(gradient(images, filters))
