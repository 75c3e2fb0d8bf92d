# autograd gives the filters' gradient, with the result itself as its slope; settings by set_flags.
import torch
from given import FIXED, HALF, REPEAT, batches
from torch.nn.functional import conv2d


class Twice(torch.nn.Module):
    def forward(self, images, filters):
        with torch.no_grad():
            once = conv2d(images, filters, padding=1)
        # detached, so that its gradient belongs to nobody else
        last = filters.detach().requires_grad_()
        twice = conv2d(once, last, padding=1)
        (slope,) = torch.autograd.grad(twice, last, grad_outputs=twice.detach())
        return slope


def prepare(workload, batches, images, channels, side):
    torch.backends.cudnn.set_flags(
        _benchmark=workload in (FIXED, HALF),
        _deterministic=workload == REPEAT,
        _allow_tf32=workload != REPEAT,
    )
    wanted = (torch.half, torch.channels_last) if workload == HALF else None
    return Twice(), wanted


def run(state, x, filters, height, width, out):
    of_batch, wanted = state
    if wanted is not None:
        filters = filters.to(wanted[0], memory_format=wanted[1])
    out.zero_()
    for images in batches(x, height, width):
        if wanted is not None:
            images = images.to(wanted[0], memory_format=wanted[1])
        out += of_batch(images, filters)
