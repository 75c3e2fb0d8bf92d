import torch
from given import new_library, rms_norm_kernel

library = new_library()
library.define("rms_norm(Tensor x, Tensor weight, float eps) -> (Tensor, Tensor)")
NAME = f"{library.ns}::rms_norm"


def forward(x, weight, eps):
    # Does the kernel see the x that it was given? Read what it says of strides.
    out = torch.empty_like(x)
    rstd = x.new_empty(x.shape[0])
    rms_norm_kernel(x, weight, eps, out, rstd)
    return out, rstd


def fake(x, weight, eps):
    # Are these the shapes, strides and dtypes that forward gives?
    return torch.empty_like(x), x.new_empty(x.shape[1])


def setup_context(ctx, inputs, output):
    # What will backward need?
    ctx.mark_non_differentiable(output[1])


def backward(ctx, grad, _):
    # The gradients of x and weight; eps has none.
    return grad, grad.sum(0), None


for device in ("CPU", "CUDA"):
    library.impl("rms_norm", forward, device)
torch.library.register_fake(NAME, fake, lib=library)
torch.library.register_autograd(
    NAME, backward, setup_context=setup_context, lib=library
)


def prepare(rows, width):
    operator = getattr(torch.ops, library.ns).rms_norm
    return lambda x, weight, eps: operator(x, weight, eps)[0]
