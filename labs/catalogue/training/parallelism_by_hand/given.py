"""Ranks that exchange tensors, the layers they compute, and what the lab asks of them.

`Comm` is what a rank's function is given. The grader runs each rank in a process of its
own, in turns: a rank goes on until it awaits something. `run`, which answers, is in one
more. In a notebook `measure` runs the same functions over NCCL or gloo.
"""

import inspect
import runpy
import statistics
import sys
import time
from functools import partial

import torch

EPS = 1e-5
#: of a bucket in `measure`; PyTorch's DistributedDataParallel has 25 MiB
BUCKET_BYTES = 25 << 20
FUNCTIONS = ("tensor_parallel", "sequence_parallel", "data_parallel")


def parts(count, size):
    """Give how many rows or columns each rank has; the first have one more."""
    return [count // size + (rank < count % size) for rank in range(size)]


def own_rows(x, rank, size):
    """Give the rows of a rank."""
    return x.split(parts(x.shape[0], size))[rank].clone()


def own_columns(x, rank, size):
    """Give the columns of a rank."""
    return x.split(parts(x.shape[1], size), 1)[rank].clone()


def relu2(h):
    """Give the square of what is positive."""
    return h.relu().square()


def relu2_backward(h, grad):
    """Give the gradient of h, from that of relu2(h)."""
    return grad * 2 * h.relu()


def rms_norm(x, scale):
    """Normalize each row, and multiply its columns by `scale`."""
    return x * torch.rsqrt(x.square().mean(1, keepdim=True) + EPS) * scale


def rms_norm_backward(x, scale, grad):
    """Give the gradients of x and scale, from that of rms_norm(x, scale)."""
    rstd = torch.rsqrt(x.square().mean(1, keepdim=True) + EPS)
    normal, part = x * rstd, grad * scale
    along = (part * normal).mean(1, keepdim=True)
    return rstd * (part - normal * along), (grad * normal).sum(0)


class Deadlock(RuntimeError):
    """Ranks wait for what comes never."""


class Mismatch(RuntimeError):
    """Ranks exchange tensors whose shapes do not fit."""


class TooMuchTraffic(RuntimeError):
    """More was sent than the method needs."""


class WrongBuckets(RuntimeError):
    """Gradients are not joined in their order."""


class Request:
    """What a rank awaits."""

    def __init__(self, kind, x, peer, line):
        """Keep what is sent as it is now, and the line that asks."""
        self.kind, self.peer, self.line = kind, peer, line
        self.x, self.is_awaited = x.detach().clone(), False

    def __await__(self):
        """Hand this to whoever runs the ranks, and give what comes back."""
        self.is_awaited = True
        return (yield self)

    def __str__(self):
        """Name it with its line."""
        return f"{self.kind} (line {self.line})"


class Comm:
    """One rank's way to the others; everything is awaited, and gives a new tensor."""

    def __init__(self, rank, size):
        """Be rank `rank` of `size`."""
        self.rank, self.size, self.requests = rank, size, []

    def _request(self, kind, x, peer=None):
        # the line of whoever called a method
        line = sys._getframe(2).f_lineno
        self.requests.append(Request(kind, x, peer, line))
        return self.requests[-1]

    def all_reduce(self, x):
        """Give the sum of all ranks' x, which has the same shape on each."""
        return self._request("all_reduce", x)

    def all_gather(self, x):
        """Give all ranks' rows, those of rank 0 first; their numbers may differ."""
        return self._request("all_gather", x)

    def reduce_scatter(self, x):
        """Give this rank's rows, by `parts`, of the sum of all ranks' x."""
        return self._request("reduce_scatter", x)

    def send(self, x, to):
        """Wait until rank `to` receives x."""
        return self._request("send", x, to)

    def receive(self, like, source):
        """Give what rank `source` sends, of the shape and dtype of `like`."""
        return self._request("receive", like, source)


def ring_bytes(kind, shapes, rank, item_bytes=4):
    """Give what a rank sends and receives in a collective, around a ring, in bytes.

    In a reduce-scatter a rank passes on each chunk but its own; in an all-gather each
    but that of the next rank. An all-reduce is one after the other.
    """
    size = len(shapes)
    if kind == "all_gather":
        chunks = [shape.numel() for shape in shapes]
    elif kind == "reduce_scatter":
        row = shapes[0].numel() // max(1, shapes[0][0])
        chunks = [row * count for count in parts(shapes[0][0], size)]
    else:
        chunks = parts(shapes[0].numel(), size)
    own, before, after = (chunks[(rank + by) % size] for by in (0, -1, 1))
    reduced = (sum(chunks) - own, sum(chunks) - before)
    gathered = (sum(chunks) - after, sum(chunks) - own)
    phases = {"reduce_scatter": [reduced], "all_gather": [gathered]}
    both = phases.get(kind, [reduced, gathered])
    return [item_bytes * sum(direction) for direction in zip(*both, strict=True)]


class Traffic:
    """What each rank has sent and received, in bytes, and in how many messages."""

    def __init__(self, size):
        """Begin with nothing."""
        self.sent_bytes, self.received_bytes = [0] * size, [0] * size
        self.messages, self.largest_bytes = [0] * size, 0
        self.calls = [[] for _ in range(size)]
        # elements of each collective that leaves a whole tensor on every rank
        self.joined = []

    def add(self, rank, request, shapes):
        """Count what a rank's request moves."""
        size, sent, received = len(self.messages), 0, 0
        tensor_bytes = request.x.numel() * request.x.element_size()
        if request.kind in ("send", "receive"):
            is_sent = request.kind == "send"
            sent, received = tensor_bytes * is_sent, tensor_bytes * (not is_sent)
            self.messages[rank] += is_sent
        else:
            item_bytes = request.x.element_size()
            sent, received = ring_bytes(request.kind, shapes, rank, item_bytes)
            both = 2 if request.kind == "all_reduce" else 1
            self.messages[rank] += both * (size - 1)
            if rank == 0 and request.kind != "reduce_scatter":
                gathers = request.kind == "all_gather"
                whole = shapes if gathers else shapes[:1]
                self.joined.append(sum(shape.numel() for shape in whole))
        self.sent_bytes[rank] += sent
        self.received_bytes[rank] += received
        self.largest_bytes = max(self.largest_bytes, tensor_bytes)
        self.calls[rank].append((sent, str(request)))


def steps(function, comm, *arguments):
    """Run a rank's function: yield what it awaits, be sent answers, give its result.

    Raises:
        TypeError: it is no coroutine, or awaits something else.
        RuntimeError: a request was not awaited.
    """
    work, answer = function(comm, *arguments), None
    if not inspect.iscoroutine(work):
        raise TypeError("the functions of ranks begin with `async def`")
    try:
        while True:
            try:
                request = work.send(answer)
            except StopIteration as end:
                _refuse_unawaited(comm)
                return end.value
            except (AttributeError, TypeError):
                # what a request that was not awaited lacks
                _refuse_unawaited(comm)
                raise
            if not isinstance(request, Request):
                raise TypeError("a rank awaits what `comm` gives, and nothing else")
            answer = yield request
    finally:
        work.close()


def run_ranks(work, size):
    """Run `work(comm)` on each rank until all have ended.

    Returns:
        What each rank returned, and the traffic.

    Raises:
        Deadlock: ranks wait for one another; the message says which, and where.
        Mismatch: shapes do not fit.
    """
    runs = [steps(work, Comm(rank, size)) for rank in range(size)]
    traffic, ended, waiting = Traffic(size), {}, {}
    answers = dict.fromkeys(range(size))
    while answers:
        for rank, answer in answers.items():
            try:
                waiting[rank] = runs[rank].send(answer)
            except StopIteration as end:
                ended[rank] = end.value
        answers = _answers(waiting, size, traffic)
        for rank in answers:
            del waiting[rank]
    if waiting:
        raise Deadlock(_waiting_words(waiting, size))
    return [ended[rank] for rank in range(size)], traffic


def _refuse_unawaited(comm):
    for request in comm.requests:
        if not request.is_awaited:
            raise RuntimeError(f"{request} has no `await`, so nothing was exchanged")


def _answers(waiting, size, traffic):
    """Give by rank what comes of requests that all who are needed have made."""
    for rank, request in waiting.items():
        peer = waiting.get(request.peer)
        if (
            request.kind == "send"
            and peer
            and (peer.kind, peer.peer) == ("receive", rank)
        ):
            _refuse_other_shapes({rank: request, request.peer: peer})
            traffic.add(rank, request, None)
            traffic.add(request.peer, peer, None)
            return {rank: None, request.peer: request.x}
    kinds = {request.kind for request in waiting.values()}
    if len(waiting) < size or len(kinds) > 1 or kinds & {"send", "receive"}:
        return {}
    [kind], held = kinds, [waiting[rank].x for rank in range(size)]
    _refuse_other_shapes(waiting, beginning=1 if kind == "all_gather" else 0)
    for rank, request in waiting.items():
        traffic.add(rank, request, [x.shape for x in held])
    if kind == "all_gather":
        return {rank: torch.cat(held) for rank in range(size)}
    total = torch.stack(held).sum(0)
    if kind == "all_reduce":
        return {rank: total.clone() for rank in range(size)}
    return {rank: own_rows(total, rank, size) for rank in range(size)}


def _refuse_other_shapes(requests, beginning=0):
    seen = {
        (request.x.shape[beginning:], request.x.dtype) for request in requests.values()
    }
    if len(seen) > 1:
        words = [
            f"rank {rank} has {list(request.x.shape)} of {request.x.dtype} in {request}"
            for rank, request in sorted(requests.items())
        ]
        raise Mismatch("; ".join(words))


def _waiting_words(waiting, size):
    """Say of each rank whom it waits for."""
    words = []
    for rank in range(size):
        request = waiting.get(rank)
        if request is None:
            words.append(f"rank {rank} has ended")
            continue
        peers = [request.peer]
        if request.peer is None:
            kinds = {one: of.kind for one, of in waiting.items()}
            peers = [one for one in range(size) if kinds.get(one) != request.kind]
        plural = "s" if len(peers) > 1 else ""
        listed = ", ".join(map(str, peers))
        words.append(f"rank {rank} waits in {request} for rank{plural} {listed}")
    return "; ".join(words)


def arguments_of(name, rank, size, tensors, bucket_bytes):
    """Give what a function of one rank is called with, behind its `comm`."""
    x, scale, w1, w2, bias, grad, replica_grads = tensors
    w1, w2 = own_columns(w1, rank, size), own_rows(w2, rank, size)
    if name == "tensor_parallel":
        return x.clone(), w1, w2, bias.clone(), grad.clone()
    if name == "sequence_parallel":
        x, grad = own_rows(x, rank, size), own_rows(grad, rank, size)
        return x, scale.clone(), w1, w2, bias.clone(), grad
    rows = parts(x.shape[0], size)
    return gradients_of(replica_grads[rank], tensors), rows, bucket_bytes


def gradients_of(flat, tensors):
    """Cut one replica's gradients out of a row, in the order of backward."""
    shapes = [tensors[place].shape for place in (3, 4, 2, 1)]
    pieces = flat.split([shape.numel() for shape in shapes])
    return [
        piece.view(shape).clone() for piece, shape in zip(pieces, shapes, strict=True)
    ]


def buckets_of(grads, bucket_bytes):
    """Give the elements of each bucket of gradients, in their order while they fit."""
    buckets = []
    for grad in grads:
        if not buckets or 4 * (buckets[-1] + grad.numel()) > bucket_bytes:
            buckets.append(0)
        buckets[-1] += grad.numel()
    return buckets


def bounds_of(name, size, tensors, bucket_bytes):
    """Give what suffices: bytes of all ranks, of one; messages of one; a call's bytes.

    One rank may send its largest part to each other one; around a ring that is enough.
    """
    x, scale, _, _, _, _, replica_grads = tensors
    others = size - 1
    matrix = (others * x.numel(), others * parts(x.shape[0], size)[0] * x.shape[1])
    vector = (others * scale.numel(), others * parts(scale.numel(), size)[0])
    if name == "tensor_parallel":
        # two all-reduces of all rows
        elements, messages, largest = [4 * of for of in matrix], 4 * others, None
    elif name == "sequence_parallel":
        # two all-gathers and two reduce-scatters of all rows, an all-reduce of `scale`
        elements = [4 * m + 2 * v for m, v in zip(matrix, vector, strict=True)]
        messages, largest = 6 * others, None
    else:
        grads = gradients_of(replica_grads[0], tensors)
        count = len(buckets_of(grads, bucket_bytes))
        of = replica_grads.shape[1]
        elements = [2 * others * of, 2 * others * (of // size + count)]
        messages = 2 * others * count
        largest = max(bucket_bytes, *(4 * grad.numel() for grad in grads))
    return 4 * elements[0], 4 * elements[1], messages, largest


def refuse_traffic(name, traffic, bounds):
    """Refuse what moves more than suffices, and say how much that is.

    Raises:
        TooMuchTraffic: with the rank that moved most, and its largest calls.
    """
    all_bytes, rank_bytes, messages, largest_bytes = bounds
    both = zip(traffic.sent_bytes, traffic.received_bytes, strict=True)
    moved_bytes = [max(of) for of in both]
    rank = moved_bytes.index(max(moved_bytes))
    sent_bytes, most = sum(traffic.sent_bytes), max(traffic.messages)
    problem = ""
    if sent_bytes > all_bytes:
        problem = f"the ranks sent {sent_bytes:,} bytes, and {all_bytes:,} suffice"
    elif moved_bytes[rank] > rank_bytes:
        problem = f"rank {rank} moved {moved_bytes[rank]:,} bytes one way, and "
        problem += f"{rank_bytes:,} suffice if all ranks take a share"
    elif most > messages:
        problem = f"a rank sent {most:,} messages, and {messages:,} suffice"
    elif largest_bytes is not None and traffic.largest_bytes > largest_bytes:
        problem = f"a call has {traffic.largest_bytes:,} bytes, and a bucket may have "
        problem += f"{largest_bytes:,}"
    if problem:
        calls = sorted(traffic.calls[rank], key=lambda call: -call[0])[:4]
        listed = ", ".join(f"{call} {call_bytes:,}" for call_bytes, call in calls)
        raise TooMuchTraffic(
            f"{name}: {problem}. Rank {rank} sent {traffic.sent_bytes[rank]:,} bytes "
            f"and received {traffic.received_bytes[rank]:,}; sent by {listed}."
        )


def refuse_other_buckets(traffic, buckets):
    """Refuse buckets of other sizes; one that is sent piece by piece is not seen.

    Raises:
        WrongBuckets: with the sizes of both.
    """
    if sum(traffic.joined) == sum(buckets) and traffic.joined != buckets:
        raise WrongBuckets(
            f"data_parallel: the calls have {traffic.joined} elements, and the buckets "
            f"{buckets}: each takes the next gradients, in their order, while they fit"
        )


def run(
    functions, x, scale, w1, w2, bias, grad, replica_grads, bucket_bytes, **outputs
):
    """Run each function on all ranks, and write what they return, for the grader."""
    tensors = (x, scale, w1, w2, bias, grad, replica_grads)
    size = replica_grads.shape[0]
    by_name = dict(zip(FUNCTIONS, functions, strict=True))
    # a rank's process may keep what it was given: all rows come behind its own rows
    for name in ("sequence_parallel", "tensor_parallel", "data_parallel"):

        def work(comm, name=name):
            own = arguments_of(name, comm.rank, size, tensors, bucket_bytes)
            return by_name[name](comm, *own)

        results, traffic = run_ranks(work, size)
        for output, joined in joined_results(name, results, tensors).items():
            outputs[output].copy_(joined)
        refuse_traffic(name, traffic, bounds_of(name, size, tensors, bucket_bytes))
        if name == "data_parallel":
            grads = gradients_of(replica_grads[0], tensors)
            refuse_other_buckets(traffic, buckets_of(grads, bucket_bytes))


def joined_results(name, results, tensors):
    """Put the results of all ranks together, by the names of the outputs.

    Raises:
        Mismatch: a rank returned something else than is asked for.
    """
    size = len(results)
    for rank, result in enumerate(results):
        wanted = shapes_of(name, rank, size, tensors)
        if not isinstance(result, tuple | list) or len(result) != len(wanted):
            raise Mismatch(f"{name} returns {len(wanted)} tensors; rank {rank} did not")
        for place, (one, shape) in enumerate(zip(result, wanted, strict=True)):
            held = list(one.shape) if isinstance(one, torch.Tensor) else "no tensor"
            if held != list(shape):
                words = f"is {held}, and should have the shape {list(shape)}"
                raise Mismatch(f"{name}: result {place} of rank {rank} {words}")
    if name == "data_parallel":
        flat = [torch.cat([one.flatten() for one in result]) for result in results]
        return {"dp_grads": torch.stack(flat)}
    columns = list(zip(*results, strict=True))
    if name == "tensor_parallel":
        names, ways = ("out", "grad_x", "grad_w1", "grad_w2", "grad_bias"), "==|-="
    else:
        names = ("out", "grad_x", "grad_scale", "grad_w1", "grad_w2", "grad_bias")
        ways = "--=|-="
    # = the same on each rank, | columns of each, - rows of each
    join = {"=": torch.stack, "|": lambda of: torch.cat(of, 1), "-": torch.cat}
    short = {"tensor_parallel": "tp", "sequence_parallel": "sp"}[name]
    return {
        f"{short}_{output}": join[way](column)
        for output, way, column in zip(names, ways, columns, strict=True)
    }


def shapes_of(name, rank, size, tensors):
    """Give the shapes of what a function returns on a rank."""
    if name == "data_parallel":
        return [one.shape for one in gradients_of(tensors[6][rank], tensors)]
    x, *others, _ = arguments_of(name, rank, size, tensors, 0)
    return [x.shape, x.shape, *(one.shape for one in others)]


def drawn_tensors(size, tokens, hidden, inner):
    """Draw what the functions are called with, the same on each rank, in float64."""
    rng = torch.Generator().manual_seed(7)
    count = 2 * hidden * inner + 2 * hidden
    shapes = ((tokens, hidden), (hidden,), (hidden, inner), (inner, hidden), (hidden,))
    shapes += ((tokens, hidden), (size, count))
    over = (1, 1, hidden**0.5, inner**0.5, 1, 1, 1)
    drawn = [torch.randn(*shape, generator=rng).double() for shape in shapes]
    return [one / by for one, by in zip(drawn, over, strict=True)]


def on_one_device(name, tensors):
    """Give what all ranks' results are together, by autograd and without ranks."""
    x, scale, w1, w2, bias = leaves = [
        one.clone().requires_grad_() for one in tensors[:5]
    ]
    size = tensors[6].shape[0]
    if name == "data_parallel":
        weights = tensors[6].new_tensor(parts(x.shape[0], size)) / x.shape[0]
        return {"dp_grads": (weights[:, None] * tensors[6]).sum(0).expand(size, -1)}
    is_split = name == "sequence_parallel"
    normal = rms_norm(x, scale) if is_split else x
    out = relu2(normal @ w1) @ w2 + bias
    grads = torch.autograd.grad(out, leaves, tensors[5], allow_unused=True)
    of = {
        "out": out.detach(),
        **dict(zip(("grad_x", "grad_scale"), grads, strict=False)),
    }
    of |= dict(zip(("grad_w1", "grad_w2", "grad_bias"), grads[2:], strict=True))
    short = "sp" if is_split else "tp"
    return {f"{short}_{key}": value for key, value in of.items() if value is not None}


def on_rank(rank, device, source, sizes, calls):
    """Run the functions of a source on one rank of a group, and time them.

    Returns:
        By function: `error`, the largest beside the largest value of one device; `s`,
        the median of the calls on the slowest rank; `sent_bytes` of rank 0, and
        `enough_bytes`.
    """
    from warpbook_labs.ranks import run_awaiting

    dist = torch.distributed
    size = dist.get_world_size()
    functions = runpy.run_path(source)["prepare"](ranks=size, **sizes)
    tensors = [one.to(device) for one in drawn_tensors(size, **sizes)]
    singles, results = [one.float() for one in tensors], {}
    for name, function in zip(FUNCTIONS, functions, strict=True):
        times_s = []
        for _ in range(calls + 1):
            own = arguments_of(name, rank, size, singles, BUCKET_BYTES)
            dist.barrier()
            begin_s = time.perf_counter()
            traffic = Traffic(size)
            held = run_awaiting(
                function(Comm(rank, size), *own), partial(traffic.add, rank)
            )
            if device.type == "cuda":
                torch.cuda.synchronize(device)
            times_s.append(time.perf_counter() - begin_s)
        # the first one is of no use: it starts libraries
        slowest = torch.tensor(statistics.median(times_s[1:]), device=device)
        dist.all_reduce(slowest, dist.ReduceOp.MAX)
        of_all = [None] * size
        dist.all_gather_object(of_all, [one.cpu() for one in held])
        results[name] = {
            "error": error_of(joined_results(name, of_all, singles), name, tensors),
            "s": slowest.item(),
            "sent_bytes": traffic.sent_bytes[rank],
            "enough_bytes": bounds_of(name, size, singles, BUCKET_BYTES)[1],
        }
    return {"backend": dist.get_backend(), "ranks": size, "results": results}


def error_of(joined, name, tensors):
    """Give the largest error of ranks' results beside one device's largest value."""
    right = on_one_device(name, tensors)
    errors = [
        (joined[key] - one.cpu()).abs().max() / one.abs().max().cpu()
        for key, one in right.items()
    ]
    return max(errors).item()


def measure(
    ranks=None, source="solution.py", tokens=512, hidden=1024, inner=4096, calls=5
):
    """Run a source's functions in a process for each rank: all GPUs, or two on the CPU.

    Returns:
        A dict: `backend`, "nccl" or "gloo"; `ranks`; `results` by function.
    """
    from warpbook_labs.ranks import run_on_ranks

    sizes = {"tokens": tokens, "hidden": hidden, "inner": inner}
    ranks = ranks or max(2, torch.cuda.device_count())
    return run_on_ranks(on_rank, ranks, source, sizes, calls)


def table(measured):
    """Write a measurement as text."""
    lines = [
        f"{measured['ranks']} ranks over {measured['backend']}",
        f"{'':20}{'error':>10}{'ms':>10}{'MB sent':>10}{'enough':>10}",
    ]
    for name, of in measured["results"].items():
        cells = of["s"] * 1e3, of["sent_bytes"] / 1e6, of["enough_bytes"] / 1e6
        lines.append(
            f"{name:20}{of['error']:10.1e}" + "".join(f"{one:10.2f}" for one in cells)
        )
    return "\n".join(lines)
