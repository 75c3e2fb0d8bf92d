import torch
from given import new_library, rms_norm_kernel

library = new_library()
library.define("rms_norm(Tensor x, Tensor weight, float eps) -> (Tensor, Tensor)")
NAME = f"{library.ns}::rms_norm"


def forward(x, weight, eps):
    rows, width = x.shape
    dense = torch.empty((rows, width), dtype=x.dtype, device=x.device)
    dense.copy_(x)
    # the kernel reads each element before it writes it, so one buffer does
    rstd = x.new_empty(rows)
    rms_norm_kernel(dense, weight.contiguous(), eps, dense, rstd)
    return dense, rstd


def fake(x, weight, eps):
    rows, width = x.shape
    kind = {"dtype": x.dtype, "device": x.device}
    return torch.empty(rows, width, **kind), torch.empty(rows, **kind)


def setup_context(ctx, inputs, output):
    x, weight, _ = inputs
    _, rstd = output
    ctx.save_for_backward(x, weight, rstd)
    ctx.mark_non_differentiable(rstd)


def backward(ctx, grad, _):
    x, weight, rstd = ctx.saved_tensors
    normal = x * rstd[:, None]
    sums = torch.einsum("ij,ij,j->i", grad, normal, weight)
    grad_x = grad * weight * rstd[:, None]
    grad_x -= normal * (rstd * sums / x.shape[1])[:, None]
    return grad_x, torch.einsum("ij,ij->j", grad, normal), None


for device in ("CPU", "CUDA"):
    library.impl("rms_norm", forward, device)
torch.library.register_fake(NAME, fake, lib=library)
torch.library.register_autograd(
    NAME, backward, setup_context=setup_context, lib=library
)


def prepare(rows, width):
    operator = getattr(torch.ops, library.ns).rms_norm
    return lambda x, weight, eps: operator(x, weight, eps)[0]
