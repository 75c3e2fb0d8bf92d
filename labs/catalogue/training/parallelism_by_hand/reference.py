import torch
from given import relu2, relu2_backward, rms_norm, rms_norm_backward


async def tensor_parallel(comm, x, w1, w2, bias, grad):
    # each rank has columns of the hidden layer, and no other rank needs them
    h = x @ w1
    a = relu2(h)
    # a product with some rows of w2 is one term of a sum over ranks
    y = await comm.all_reduce(a @ w2) + bias
    grad_h = relu2_backward(h, grad @ w2.t())
    grad_x = await comm.all_reduce(grad_h @ w1.t())
    return y, grad_x, x.t() @ grad_h, a.t() @ grad, grad.sum(0)


async def sequence_parallel(comm, x, scale, w1, w2, bias, grad):
    rows = await comm.all_gather(rms_norm(x, scale))
    h = rows @ w1
    a = relu2(h)
    y = await comm.reduce_scatter(a @ w2) + bias
    grads = await comm.all_gather(grad)
    grad_h = relu2_backward(h, grads @ w2.t())
    grad_rows = await comm.reduce_scatter(grad_h @ w1.t())
    grad_x, grad_scale = rms_norm_backward(x, scale, grad_rows)
    # each rank has seen its own rows only
    grad_scale = await comm.all_reduce(grad_scale)
    return y, grad_x, grad_scale, rows.t() @ grad_h, a.t() @ grads, grads.sum(0)


async def data_parallel(comm, grads, rows, bucket_bytes):
    # a mean of fewer rows counts less
    weight = rows[comm.rank] / sum(rows)
    buckets, held_bytes = [], 0
    for grad in grads:
        grad_bytes = grad.numel() * grad.element_size()
        if not buckets or held_bytes + grad_bytes > bucket_bytes:
            buckets.append([])
            held_bytes = 0
        buckets[-1].append(grad)
        held_bytes += grad_bytes
    averages = []
    for bucket in buckets:
        flat = torch.cat([grad.flatten() for grad in bucket]) * weight
        total = await comm.all_reduce(flat)
        pieces = total.split([grad.numel() for grad in bucket])
        averages += [p.view_as(g) for p, g in zip(pieces, bucket, strict=True)]
    return averages


def prepare(ranks, tokens, hidden, inner):
    return tensor_parallel, sequence_parallel, data_parallel
