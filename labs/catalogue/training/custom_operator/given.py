"""A kernel that only knows memory, and what uses an operator."""

import sys
import time

import torch
from torch.utils._python_dispatch import TorchDispatchMode


class Operators(TorchDispatchMode):
    """Note the names of the operators that the dispatcher is asked for."""

    def __init__(self):
        """Begin with none."""
        super().__init__()
        self.names = []

    def __torch_dispatch__(self, operator, types, arguments=(), named=None):
        """Note it, and go on."""
        self.names.append(operator.name())
        return operator(*arguments, **(named or {}))

    def has_rms_norm(self):
        """Tell whether one of `new_library` is among them that autograd knows."""
        return any(
            name.startswith("lab_")
            and "::rms_norm" in name
            and any(
                torch._C._dispatch_has_kernel_for_dispatch_key(name, key)
                for key in ("Autograd", "AutogradCPU", "AutogradCUDA")
            )
            for name in self.names
        )


class KernelNotCalled(RuntimeError):
    """An operator does without the kernel that it is there for."""


def new_library():
    """Give a library for operators, with a namespace that no earlier run has used."""
    return torch.library.Library(f"lab_{time.perf_counter_ns()}", "FRAGMENT")


@torch.no_grad()
def rms_norm_kernel(x, weight, eps, out, rstd):
    """Write out = x * rstd * weight and rstd, as a kernel with pointers does.

    Element (i, j) of x and out is taken to lie at i * width + j, and element j of
    weight at j, whatever strides the tensors have.

    Raises:
        ValueError: rstd has not one element for each row.
    """
    rms_norm_kernel.calls += 1
    rows, width = x.shape
    if rstd.numel() != rows:
        raise ValueError(f"rstd has {rstd.numel()} elements for {rows} rows")
    dense = x.as_strided((rows, width), (width, 1))
    scale = torch.rsqrt(dense.square().mean(1) + eps)
    normal = dense * scale[:, None] * weight.as_strided((width,), (1,))
    rstd.as_strided((rows,), (1,)).copy_(scale)
    out.as_strided((rows, width), (width, 1)).copy_(normal)


#: how often it was called, by whomever
rms_norm_kernel.calls = 0


def use(operator, x, weight, grad, eps, out, grad_x, grad_weight, facts):
    """Use an operator as training and a compiler do, and write what comes of it.

    Raises:
        KernelNotCalled: its forward has computed the result otherwise.
    """
    # the same numbers, column by column in memory
    columns = x.t().contiguous().t().requires_grad_()
    weights = weight.detach().requires_grad_()
    # that of the module which the operator has imported
    kernel = sys.modules["given"].rms_norm_kernel
    calls = kernel.calls
    with Operators() as called:
        result = operator(columns, weights, eps)
    is_by_kernel = kernel.calls > calls
    slopes = torch.autograd.grad(result, (columns, weights), grad)
    out.copy_(result.detach())
    grad_x.copy_(slopes[0])
    grad_weight.copy_(slopes[1])
    is_operator = called.has_rms_norm() and "rms_norm" in result.grad_fn.name()
    is_kept = torch.equal(columns.detach(), x)
    # a compiler asks with tensors that have a shape and no memory
    rows, width = x.shape
    half = {"dtype": torch.float16, "device": "meta"}
    # an odd width and an even number of rows, so that one never fits for the other
    shapes = torch.empty(2 * width + 1, 2 * rows, **half).t().requires_grad_()
    shapes_of_weights = torch.empty(2 * width + 1, **half).requires_grad_()
    with Operators() as called:
        fake = operator(shapes, shapes_of_weights, eps)
    is_operator &= called.has_rms_norm()
    # and goes back through them: shapes that do not fit are refused there
    torch.autograd.grad(fake, (shapes, shapes_of_weights), torch.empty_like(fake))
    is_half = fake.dtype == torch.float16 and fake.device.type == "meta"
    numbers = [*fake.shape, *fake.stride(), is_half, is_kept, is_operator]
    facts.copy_(torch.tensor(numbers, dtype=torch.int32))
    if is_operator and not is_by_kernel:
        raise KernelNotCalled(
            "the forward never called `rms_norm_kernel` of given.py: the operator is "
            "there to bring that kernel into PyTorch, whatever else gives these numbers"
        )


def run(operator, x, weight, grad, eps, out, grad_x, grad_weight, facts):
    """Use what `prepare` returns; the grader calls it, whatever else there is."""
    use(operator, x, weight, grad, eps, out, grad_x, grad_weight, facts)
