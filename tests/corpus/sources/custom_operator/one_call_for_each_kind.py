# Registrations are decorators, and backward is a product of matrices with a Jacobian's parts
import torch
from given import new_library, rms_norm_kernel

library = new_library()
library.define("rms_norm(Tensor x, Tensor weight, float eps) -> (Tensor, Tensor)")
QUALIFIED = library.ns + "::rms_norm"


def room_for(x):
    rows, width = x.shape
    return x.new_empty((rows, width)), x.new_empty((rows,))


@torch.library.impl(QUALIFIED, ("cpu", "cuda"), lib=library)
def compute(x, weight, eps):
    results = room_for(x)
    dense = x.clone(memory_format=torch.contiguous_format)
    rms_norm_kernel(dense, weight.contiguous(), eps, *results)
    return results


@torch.library.register_fake(QUALIFIED, lib=library)
def describe(x, weight, eps):
    return room_for(x)


def keep(ctx, inputs, output):
    ctx.save_for_backward(*inputs[:2], output[1])
    ctx.mark_non_differentiable(output[1])
    ctx.width = inputs[0].size(-1)


def back(ctx, slope, unused):
    x, weight, rstd = ctx.saved_tensors
    column = rstd.unsqueeze(1)
    to_weight = torch.mv((slope * x).t(), rstd)
    scaled = slope.mul(weight).mul(column)
    projected = (scaled * x).sum(1, keepdim=True) * column.square()
    to_x = scaled - x * projected / ctx.width
    return to_x, to_weight, None


torch.library.register_autograd(QUALIFIED, back, setup_context=keep, lib=library)


def prepare(rows, width):
    name = QUALIFIED.replace("::", ".")
    packet = getattr(torch.ops, name.split(".")[0]).rms_norm

    def first(*arguments):
        out, _ = packet(*arguments)
        return out

    return first
