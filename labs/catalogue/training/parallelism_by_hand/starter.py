import torch
from given import relu2, relu2_backward, rms_norm, rms_norm_backward


async def tensor_parallel(comm, x, w1, w2, bias, grad):
    # All of x and grad on each rank; some columns of w1, and as many rows of w2.
    h = x @ w1
    a = relu2(h)
    # Is this the output, or one rank's part of it? And who adds the bias?
    y = a @ w2 + bias
    grad_h = relu2_backward(h, grad @ w2.t())
    grad_x = grad_h @ w1.t()
    return y, grad_x, x.t() @ grad_h, a.t() @ grad, grad.sum(0)


async def sequence_parallel(comm, x, scale, w1, w2, bias, grad):
    # The same layer behind a norm. Each rank has some rows of x and grad, and returns
    # its rows of y and grad_x. All ranks return the same grad_scale and grad_bias.
    normal = rms_norm(x, scale)
    grad_x, grad_scale = rms_norm_backward(x, scale, torch.zeros_like(normal))
    return grad, grad_x, grad_scale, torch.zeros_like(w1), torch.zeros_like(w2), bias


async def data_parallel(comm, grads, rows, bucket_bytes):
    # grads: this replica's, of a mean over its rows; rows: how many each replica had.
    # Return the gradients of the mean over all rows, one all-reduce a bucket.
    return grads


def prepare(ranks, tokens, hidden, inner):
    return tensor_parallel, sequence_parallel, data_parallel
