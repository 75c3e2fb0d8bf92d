"""Your schedules on a real pipeline: NCCL's if there are GPUs for it, else gloo's.

Each stage is a process with some layers, and does your passes in your order. Nothing
here is graded.
"""

import runpy
import time
from collections import defaultdict

import torch
import torch.distributed as dist
from torch import nn

from warpbook_labs.ranks import run_on_ranks
from warpbook_monitors.units import share

#: layers of the whole model, their width, micro-batches, and rows of each
ON_GPU = {"layers": 16, "width": 2048, "micro_batches": 8, "rows": 4096}
ON_CPU = {"layers": 8, "width": 256, "micro_batches": 8, "rows": 128}
FORWARD, BACKWARD = 0, 1
CHUNKS = 2


def made_layers(size):
    """Make all layers on the CPU, the same on every rank."""
    torch.manual_seed(0)
    width = size["width"]
    return [
        nn.Sequential(nn.Linear(width, width), nn.GELU(), nn.Linear(width, width))
        for _ in range(size["layers"])
    ]


def through(layers, x):
    """Apply layers, each beside its input."""
    for layer in layers:
        x = x + layer(x)
    return x


def refuse_unfit(stages, chunks, micro_batches, schedule):
    """Refuse a schedule that lacks passes, or in which a stage waits for ever.

    Raises:
        ValueError: with what is wrong.
    """
    numbers = range(stages), range(chunks), range(micro_batches), (FORWARD, BACKWARD)
    wanted = torch.cartesian_prod(*(torch.tensor(list(n)) for n in numbers)).tolist()
    if sorted(map(list, schedule)) != sorted(wanted):
        raise ValueError(
            "Each stage does each chunk of each micro-batch once each way."
        )
    orders = [[row for row in schedule if row[0] == stage] for stage in range(stages)]
    done, last = set(), stages * chunks - 1
    while any(orders):
        before = len(done)
        for order in orders:
            while order:
                stage, chunk, micro_batch, kind = order[0]
                place = chunk * stages + stage
                needs = {(place, micro_batch, FORWARD)} if kind else set()
                if kind and place < last:
                    needs.add((place + 1, micro_batch, BACKWARD))
                if not kind and place > 0:
                    needs.add((place - 1, micro_batch, FORWARD))
                if not needs <= done:
                    break
                done.add((place, micro_batch, kind))
                order.pop(0)
        if len(done) == before:
            raise ValueError("A stage waits for what never comes.")


class Links:
    """Messages between stages, each way of each pair by a group of its own.

    So no message waits for one that goes elsewhere. NCCL knows messages by their order
    alone, so they are received in the order in which the sender's schedule sends them.
    """

    def __init__(self, stages, rank, device):
        """Connect each stage to the next, and the last to the first."""
        self.stages, self.rank, self.device = stages, rank, device
        self.groups = {}
        # every rank makes all groups in the same order
        for kind in (FORWARD, BACKWARD):
            for stage in range(stages):
                after = (stage + 1) % stages
                pair = (stage, after) if kind == FORWARD else (after, stage)
                self.groups[(kind, *pair)] = dist.new_group(sorted(pair))
        for (_, sender, receiver), group in self.groups.items():
            # NCCL connects by the first message, for which both have to be here
            first = torch.zeros(1, device=device)
            if rank == sender:
                dist.send(first, receiver, group=group)
            elif rank == receiver:
                dist.recv(first, sender, group=group)
        self.begin(0, [])

    def begin(self, chunks, schedule):
        """Note in which order a schedule's messages come, and forget earlier ones."""
        self.last = self.stages * chunks - 1
        self.coming, self.kept = defaultdict(list), {}
        self.requests, self.sent_bytes = [], 0
        for stage, chunk, micro_batch, kind in schedule:
            goes_to = self._next_place(chunk * self.stages + stage, kind)
            if goes_to is not None and goes_to % self.stages == self.rank:
                self.coming[kind, stage].append((goes_to, micro_batch))

    def _next_place(self, place, kind):
        place += 1 if kind == FORWARD else -1
        return place if 0 <= place <= self.last else None

    def send(self, tensor, place, micro_batch, kind):
        """Send what a place made to the next one, if there is one."""
        goes_to = self._next_place(place, kind)
        if goes_to is None:
            return
        receiver = goes_to % self.stages
        group = self.groups[kind, self.rank, receiver]
        # the tensor is kept until it is sent
        self.requests.append((dist.isend(tensor, receiver, group=group), tensor))
        self.sent_bytes += tensor.nbytes

    def receive(self, like, place, micro_batch, kind):
        """Give what the place before made, and keep what comes before it."""
        sender = (place + (-1 if kind == FORWARD else 1)) % self.stages
        while (place, micro_batch, kind) not in self.kept:
            to_place, number = self.coming[kind, sender].pop(0)
            tensor = torch.empty_like(like)
            group = self.groups[kind, sender, self.rank]
            dist.irecv(tensor, sender, group=group).wait()
            self.kept[to_place, number, kind] = tensor
        return self.kept.pop((place, micro_batch, kind))

    def end(self):
        """Wait until all is sent."""
        for request, _ in self.requests:
            request.wait()


class Watch:
    """Adds up what passes take on a device, without what they wait for."""

    def __init__(self, device):
        """Begin at nothing."""
        self.is_gpu, self.spans = device.type == "cuda", []

    def now(self):
        """Give the moment: on a GPU that at which its work so far is done."""
        if not self.is_gpu:
            return time.perf_counter()
        event = torch.cuda.Event(enable_timing=True)
        event.record()
        return event

    def seconds(self):
        """Give the sum of all spans; a GPU must be idle."""
        if not self.is_gpu:
            return sum(end - begin for begin, end in self.spans)
        return sum(begin.elapsed_time(end) for begin, end in self.spans) / 1e3


def run_stage(parts, links, schedule, inputs, targets, watch):
    """Do a stage's passes in the order of a schedule; gradients add up in its layers.

    Args:
        parts: lists of layers, by place: chunk * stages + stage.
        links: to the other stages.
        schedule: of all stages.
        inputs: of each micro-batch, rows x width.
        targets: as `inputs`.
        watch: notes when passes begin and end.

    Returns:
        The most passes whose activations were held at a time.
    """
    held, most, whole = {}, 0, sum(target.numel() for target in targets)
    for stage, chunk, micro_batch, kind in schedule:
        place = chunk * links.stages + stage
        if stage != links.rank:
            continue
        if kind == FORWARD:
            x = inputs[micro_batch]
            if place > 0:
                x = links.receive(x, place, micro_batch, kind).requires_grad_()
            begin = watch.now()
            y = through(parts[place], x)
            if place == links.last:
                y = (y - targets[micro_batch]).square().sum() / whole
            held[place, micro_batch] = x, y
            most = max(most, len(held))
            result = y.detach()
        else:
            x, y = held.pop((place, micro_batch))
            gradient = None
            if place < links.last:
                gradient = links.receive(y, place, micro_batch, kind)
            begin = watch.now()
            y.backward(gradient)
            result = x.grad
        watch.spans.append((begin, watch.now()))
        links.send(result, place, micro_batch, kind)
    links.end()
    return most


def on_rank(rank, device, schedules, size):
    """Run schedules on one stage; hold its gradients against one device's."""
    stages = dist.get_world_size()
    numbers = torch.Generator().manual_seed(1)
    shape = (size["micro_batches"], size["rows"], size["width"])
    inputs, targets = (
        torch.randn(shape, generator=numbers).to(device) for _ in range(2)
    )
    layers = [layer.to(device) for layer in made_layers(size)]
    for x, target in zip(inputs, targets, strict=True):
        loss = (through(layers, x) - target).square().sum() / targets.numel()
        loss.backward()
    right = [[weight.grad for weight in layer.parameters()] for layer in layers]
    links, results = Links(stages, rank, device), {}
    for name, (chunks, schedule) in schedules.items():
        depth = size["layers"] // (stages * chunks)
        own = range(rank, stages * chunks, stages)
        parts = {place: layers[place * depth : (place + 1) * depth] for place in own}
        for _ in range(2):  # the first run warms up
            for layer in layers:
                layer.zero_grad(set_to_none=True)
            links.begin(chunks, schedule)
            watch = Watch(device)
            synchronize(device)
            dist.barrier()
            synchronize(device)
            begin_s = time.perf_counter()
            most = run_stage(parts, links, schedule, inputs, targets, watch)
            synchronize(device)
            taken_s = time.perf_counter() - begin_s
        error = max(
            ((weight.grad - whole).norm() / whole.norm()).item()
            for place in own
            for number in range(place * depth, (place + 1) * depth)
            for weight, whole in zip(
                layers[number].parameters(), right[number], strict=True
            )
        )
        mine = (taken_s, watch.seconds(), most / chunks, error, links.sent_bytes)
        everyone = [None] * stages
        dist.all_gather_object(everyone, mine)
        times_s, busy_s, held, errors, sent_bytes = zip(*everyone, strict=True)
        results[name] = {
            "seconds": max(times_s),
            "bubble": 1 - sum(busy_s) / stages / max(times_s),
            "held": max(held),
            "error": max(errors),
            "sent_bytes": sum(sent_bytes),
        }
    return results


def synchronize(device):
    """Wait for a GPU; a CPU is done when a call returns."""
    if device.type == "cuda":
        torch.cuda.synchronize(device)


def measure(stages=None, source="answers.py", size=None):
    """Run the schedules of a source; a stage for each GPU, or two on the CPU.

    Returns:
        By schedule: `seconds` of a step; `bubble`, the part of it in which a stage
        waits, and `predicted_bubble` by `total_time` of the source; `held`, the most
        micro-batches on a stage; `error`, the largest relative difference of a gradient
        from that of one device; `sent_bytes` of all stages.

    Raises:
        ValueError: a schedule can't be run.
    """
    answers = runpy.run_path(source)
    gpus = torch.cuda.device_count()
    stages = stages or max(2, gpus)
    size = size or (ON_GPU if gpus >= stages else ON_CPU)
    count = size["micro_batches"]
    schedules = {
        "gpipe": (1, answers["gpipe"](stages, count)),
        "one_f_one_b": (1, answers["one_f_one_b"](stages, count)),
        "interleaved": (CHUNKS, answers["interleaved"](stages, CHUNKS, count)),
        "capped": (1, answers["capped"](stages, count, 2, 1)),
    }
    for name, (chunks, schedule) in schedules.items():
        try:
            refuse_unfit(stages, chunks, count, schedule)
        except ValueError as problem:
            raise ValueError(f"{name}: {problem}") from None
    results = run_on_ranks(on_rank, stages, schedules, size)
    for name, (chunks, schedule) in schedules.items():
        # a backward pass is said to take two forward passes
        whole = answers["total_time"](stages, chunks, count, 2, schedule)
        results[name]["predicted_bubble"] = 1 - count * chunks * 3 / whole
    return results


def table(results):
    """Write what was measured as text."""
    lines = [
        f"{'':<13}{'ms':>9}{'bubble':>9}{'predicted':>11}{'held':>7}"
        f"{'bytes sent':>14}{'error':>10}"
    ]
    lines += [
        f"{name:<13}{result['seconds'] * 1e3:>9.2f}{share(result['bubble']):>9}"
        f"{share(result['predicted_bubble']):>11}{result['held']:>7g}"
        f"{result['sent_bytes']:>14,}{result['error']:>10.1e}"
        for name, result in results.items()
    ]
    return "\n".join(lines)
