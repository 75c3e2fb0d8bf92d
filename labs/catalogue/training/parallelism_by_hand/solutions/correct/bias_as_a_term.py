import torch
from given import relu2, relu2_backward, rms_norm, rms_norm_backward


async def layer(comm, x, w1, w2, bias, grad, join):
    """Compute a split layer of whole rows; `join` adds up what ranks have of a sum."""
    h = x @ w1
    part = relu2(h) @ w2
    # one rank's term of the sum has the bias
    y = await join(part + bias if comm.rank == 0 else part)
    grad_h = relu2_backward(h, grad @ w2.t())
    grad_x = await join(grad_h @ w1.t())
    return y, grad_x, x.t() @ grad_h, relu2(h).t() @ grad, grad.sum(0)


async def tensor_parallel(comm, x, w1, w2, bias, grad):
    return await layer(comm, x, w1, w2, bias, grad, comm.all_reduce)


async def sequence_parallel(comm, x, scale, w1, w2, bias, grad):
    # rows as they are, and the norm on every rank
    rows, grads = await comm.all_gather(x), await comm.all_gather(grad)
    normal = rms_norm(rows, scale)
    results = await layer(comm, normal, w1, w2, bias, grads, comm.reduce_scatter)
    y, grad_normal, *others = results
    grad_x, grad_scale = rms_norm_backward(x, scale, grad_normal)
    return y, grad_x, await comm.all_reduce(grad_scale), *others


async def data_parallel(comm, grads, rows, bucket_bytes):
    buckets = [[]]
    for grad in grads:
        if (
            buckets[-1]
            and 4 * sum(map(torch.numel, [*buckets[-1], grad])) > bucket_bytes
        ):
            buckets.append([])
        buckets[-1].append(grad)
    averages = []
    for bucket in buckets:
        flat = torch.cat([grad.reshape(-1) for grad in bucket]).mul_(rows[comm.rank])
        flat = await comm.all_reduce(flat) / sum(rows)
        averages.extend(flat.split([grad.numel() for grad in bucket]))
    return [one.view_as(grad) for one, grad in zip(averages, grads, strict=True)]


def prepare(ranks, tokens, hidden, inner):
    return tensor_parallel, sequence_parallel, data_parallel
