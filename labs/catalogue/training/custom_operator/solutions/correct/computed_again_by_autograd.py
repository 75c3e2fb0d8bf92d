import torch
from given import new_library, rms_norm_kernel

library = new_library()
library.define("rms_norm(Tensor x, Tensor weight, float eps) -> (Tensor, Tensor)")
NAME = f"{library.ns}::rms_norm"


def forward(x, weight, eps):
    # the kernel knows no strides
    x, weight = x.contiguous(), weight.contiguous()
    out = torch.empty_like(x)
    rstd = x.new_empty(x.shape[0])
    rms_norm_kernel(x, weight, eps, out, rstd)
    return out, rstd


def fake(x, weight, eps):
    return x.new_empty(x.shape), x.new_empty(x.shape[0])


def setup_context(ctx, inputs, output):
    x, weight, eps = inputs
    ctx.eps = eps
    ctx.save_for_backward(x, weight)
    ctx.mark_non_differentiable(output[1])


def backward(ctx, grad, _):
    # computes forward once more, with operations that autograd knows
    with torch.enable_grad():
        x, weight = (one.detach().requires_grad_() for one in ctx.saved_tensors)
        mean = x.square().mean(1, keepdim=True)
        out = x * torch.rsqrt(mean + ctx.eps) * weight
        return (*torch.autograd.grad(out, (x, weight), grad), None)


for device in ("CPU", "CUDA"):
    library.impl("rms_norm", forward, device)
torch.library.register_fake(NAME, fake, lib=library)
torch.library.register_autograd(
    NAME, backward, setup_context=setup_context, lib=library
)


def prepare(rows, width):
    operator = getattr(torch.ops, library.ns).rms_norm
    return lambda x, weight, eps: operator(x, weight, eps)[0]
