"""A small decoder with a paged cache, served for real by your `schedule`.

Weights are random: what it writes has no meaning, and takes the time of a model of its
size. Nothing here is graded.
"""

import random
import runpy
import statistics
import time
from collections import deque

import torch
from torch import nn
from torch.nn import functional as F

from warpbook_monitors.units import share

#: `layers`, `hidden`, `heads` and `vocabulary` of the model; requests and the server
ON_GPU = {
    "layers": 8,
    "hidden": 1024,
    "heads": 16,
    "vocabulary": 32000,
    "requests": 128,
    "prompt": (32, 512),
    "output": (16, 256),
    "blocks": 1024,
    "most_tokens": 512,
    "most_requests": 32,
}
ON_CPU = ON_GPU | {
    "layers": 2,
    "hidden": 128,
    "heads": 4,
    "vocabulary": 512,
    "requests": 32,
    "prompt": (8, 96),
    "output": (4, 48),
    "blocks": 256,
    "most_tokens": 128,
    "most_requests": 8,
}
BLOCK_TOKENS = 16
#: of the iterations that full batches could do; how many of them a gap may take
LOAD, GAP_ITERATIONS = 0.7, 4


class Decoder(nn.Module):
    """A language model whose attention is given by who calls it."""

    def __init__(self, size, most_places):
        """Make all layers, with places for so many tokens of a request."""
        super().__init__()
        hidden = size["hidden"]
        self.heads = size["heads"]
        self.table = nn.Embedding(size["vocabulary"], hidden)
        self.places = nn.Embedding(most_places, hidden)
        self.layers = nn.ModuleList(
            nn.ModuleDict(
                {
                    "attention_norm": nn.RMSNorm(hidden),
                    "inputs": nn.Linear(hidden, 3 * hidden, bias=False),
                    "output": nn.Linear(hidden, hidden, bias=False),
                    "mlp_norm": nn.RMSNorm(hidden),
                    "up": nn.Linear(hidden, 4 * hidden, bias=False),
                    "down": nn.Linear(4 * hidden, hidden, bias=False),
                }
            )
            for _ in range(size["layers"])
        )
        self.norm = nn.RMSNorm(hidden)

    def forward(self, tokens, places, last, mix):
        """Give the next token of some requests.

        Args:
            tokens: packed, of all requests one behind another.
            places: of each token in its request.
            last: rows of the tokens whose successors are wanted.
            mix: attention, `mix(layer, query, key, value)`, each tokens x heads x size.
        """
        x = self.table(tokens) + self.places(places)
        for number, layer in enumerate(self.layers):
            inputs = layer["inputs"](layer["attention_norm"](x))
            query, key, value = inputs.unflatten(-1, (3, self.heads, -1)).unbind(1)
            x = x + layer["output"](mix(number, query, key, value).flatten(1))
            x = x + layer["down"](F.silu(layer["up"](layer["mlp_norm"](x))))
        return (self.norm(x[last]) @ self.table.weight.T).argmax(-1)


def attention(query, key, value, **options):
    """Mix requests x tokens x heads x size, and give the same."""
    heads_first = (tensor.transpose(1, 2) for tensor in (query, key, value))
    return F.scaled_dot_product_attention(*heads_first, **options).transpose(1, 2)


class Request:
    """A request, what it has generated, and its blocks of the cache."""

    def __init__(self, name, arrived_s, prompt, output_tokens, limit_tokens):
        """Begin with nothing generated and nothing in the cache."""
        self.name, self.arrived_s, self.prompt = name, arrived_s, prompt
        self.output_tokens, self.limit_tokens = output_tokens, limit_tokens
        self.generated, self.times_s = [], []
        self.cached, self.blocks = 0, []

    def shown(self):
        """Give what a scheduler gets as its arguments."""
        return {
            "name": self.name,
            "arrived_s": self.arrived_s,
            "prompt_tokens": len(self.prompt),
            "limit_tokens": self.limit_tokens,
            "generated_tokens": len(self.generated),
            "cached_tokens": self.cached,
        }


class Server:
    """The model, its cache in blocks, and the requests that are here."""

    def __init__(self, model, engine):
        """Make the cache, which has all its blocks free."""
        self.model, self.engine = model, engine
        weight = model.table.weight
        self.device = weight.device
        slots = engine["blocks"] * engine["block_tokens"]
        shape = (len(model.layers), 2, slots, model.heads)
        self.cache = weight.new_zeros(*shape, weight.shape[1] // model.heads)
        self.free = deque(range(engine["blocks"]))
        self.iterations = []

    def serve(self, requests, schedule):
        """Serve all requests as they arrive; give the seconds that it took.

        Raises:
            ValueError: the scheduler broke a rule.
        """
        coming, here = deque(requests), []
        begin_s = time.perf_counter()
        while coming or here:
            now_s = time.perf_counter() - begin_s
            while coming and coming[0].arrived_s <= now_s:
                here.append(coming.popleft())
            if not here:
                time.sleep(coming[0].arrived_s - now_s)
                continue
            state = {"now_s": now_s, "free_blocks": len(self.free)}
            state["requests"] = [request.shown() for request in here]
            named = {request.name: request for request in here}
            work = self._taken(schedule(self.engine, state), named)
            if work:
                self.iterate(work)
                now_s = time.perf_counter() - begin_s
                for request, _ in work:
                    if len(request.generated) > len(request.times_s):
                        request.times_s.append(now_s)
                here = [request for request in here if not self._is_done(request)]
            elif coming or getattr(schedule, "waits", False):
                # until somebody comes, or a batch has waited long enough
                time.sleep(1e-4)
            elif len(self.free) == state["free_blocks"]:
                raise ValueError("Nothing is computed, and nobody else is to come.")
        return time.perf_counter() - begin_s

    def _taken(self, decision, named):
        """Take blocks away and give blocks; list requests with their tokens."""
        for name, tokens in decision.items():
            if name not in named:
                raise ValueError(f"{name} is not here.")
            if tokens < -1:
                raise ValueError(f"{name}: {tokens} is no number of tokens.")
            if tokens == -1:
                self.release(named[name])
        work = [(named[name], count) for name, count in decision.items() if count > 0]
        for request, count in work:
            missing = len(request.prompt) + len(request.generated) - request.cached
            if count > missing:
                raise ValueError(f"{request.name} needs {missing} tokens, not {count}.")
        if sum(count for _, count in work) > self.engine["most_tokens"]:
            raise ValueError("These are more than `most_tokens`.")
        if len(work) > self.engine["most_requests"]:
            raise ValueError("These are more than `most_requests`.")
        for request, count in work:
            self.reserve(request, count)
        return work

    def reserve(self, request, count):
        """Give a request blocks for so many tokens more."""
        needed = -(-(request.cached + count) // self.engine["block_tokens"])
        if needed - len(request.blocks) > len(self.free):
            raise ValueError(f"There is no block left for {request.name}.")
        while len(request.blocks) < needed:
            request.blocks.append(self.free.popleft())

    def release(self, request):
        """Take all of a request's blocks."""
        self.free.extend(request.blocks)
        request.blocks, request.cached = [], 0

    def _is_done(self, request):
        if len(request.generated) < request.output_tokens:
            return False
        self.release(request)
        return True

    def iterate(self, work):
        """Compute tokens of requests, packed; who misses none then makes one."""
        begin_s = time.perf_counter()
        # one token each goes first, as these are mixed together
        work = sorted(work, key=lambda pair: pair[1] > 1)
        tokens, places, last, makers = [], [], [], []
        for request, count in work:
            all_tokens = [*request.prompt, *request.generated]
            tokens += all_tokens[request.cached : request.cached + count]
            places += range(request.cached, request.cached + count)
            request.cached += count
            if request.cached == len(all_tokens):
                last.append(len(tokens) - 1)
                makers.append(request)
        packed, places, last = (
            torch.tensor(numbers, dtype=torch.long, device=self.device)
            for numbers in (tokens, places, last)
        )
        groups = self._groups(work, places)

        def mix(layer, query, key, value):
            keys, values = self.cache[layer]
            keys[written], values[written] = key, value
            mixed = [
                attention(
                    query[rows].unflatten(0, (len(slots), -1)),
                    keys[slots],
                    values[slots],
                    attn_mask=mask,
                ).flatten(0, 1)
                for rows, slots, mask in groups
            ]
            return torch.cat(mixed)

        written = torch.cat(
            [
                slots.gather(1, places[rows].unflatten(0, (len(slots), -1))).flatten()
                for rows, slots, _ in groups
            ]
        )
        with torch.inference_mode():
            made = self.model(packed, places, last, mix).tolist()
        if not made and self.device.type == "cuda":
            torch.cuda.synchronize(self.device)
        for request, token in zip(makers, made, strict=True):
            request.generated.append(token)
        cached = sum(request.cached for request, _ in work)
        self.iterations.append((len(tokens), cached, time.perf_counter() - begin_s))

    def _groups(self, work, places):
        """Group requests whose attention is one call: of one token, or one longer one.

        Returns:
            For each group its rows, requests x slots of what they see, and the mask,
            requests x 1 x tokens x slots.
        """
        single = [request for request, count in work if count == 1]
        members = [(single, 1)] if single else []
        members += [([request], count) for request, count in work if count > 1]
        block_tokens, groups, first = self.engine["block_tokens"], [], 0
        within = torch.arange(block_tokens, device=self.device)
        for requests, count in members:
            rows = slice(first, first + len(requests) * count)
            first = rows.stop
            longest = max(len(request.blocks) for request in requests)
            # what is behind a request's last block is masked, so any number will do
            table = torch.tensor(
                [
                    request.blocks + [0] * (longest - len(request.blocks))
                    for request in requests
                ],
                device=self.device,
            )
            slots = (table[:, :, None] * block_tokens + within).flatten(1)
            seen = torch.arange(slots.shape[1], device=self.device)
            at = places[rows].unflatten(0, (len(requests), 1, count, 1))
            groups.append((rows, slots, seen <= at))
        return groups


class Batches:
    """Static and dynamic batches: nobody comes in until the whole batch is done."""

    waits = True

    def __init__(self, count, wait_s):
        """Take how many requests there will be, and how long the first one waits."""
        self.left, self.wait_s, self.names = count, wait_s, []

    def __call__(self, engine, state):
        """Decide as your `schedule` does."""
        here = {request["name"]: request for request in state["requests"]}
        self.names = [name for name in self.names if name in here]
        if not self.names:
            self.names = self._batch(engine, state)
            self.left -= len(self.names)
        decision, room = {}, engine["most_tokens"]
        for request in (here[name] for name in self.names):
            made = request["prompt_tokens"] + request["generated_tokens"]
            tokens = min(made - request["cached_tokens"], room)
            if tokens:
                decision[request["name"]] = tokens
                room -= tokens
        return decision

    def _batch(self, engine, state):
        waiting, free = state["requests"], state["free_blocks"]
        is_full = len(waiting) >= min(engine["most_requests"], self.left)
        if not is_full and state["now_s"] - waiting[0]["arrived_s"] < self.wait_s:
            return []
        names = []
        for request in waiting[: engine["most_requests"]]:
            # nobody can be sent away, so there is room for all that may come
            most = request["prompt_tokens"] + request["limit_tokens"]
            free -= -(-most // engine["block_tokens"])
            if free < 0:
                break
            names.append(request["name"])
        return names


def drawn(size, engine, seed=1):
    """Draw requests: lengths are uniform, times between arrivals exponential."""
    rng, now_s, requests = random.Random(seed), 0.0, []
    shortest, longest = size["output"]
    between_s = engine["weights_s"] * (shortest + longest) / 2
    between_s /= LOAD * size["most_requests"]
    for number in range(size["requests"]):
        prompt = range(rng.randint(*size["prompt"]))
        prompt = [rng.randrange(size["vocabulary"]) for _ in prompt]
        output = rng.randint(shortest, longest)
        requests.append(Request(f"r{number}", now_s, prompt, output, longest))
        now_s += rng.expovariate(1 / between_s)
    return requests


def calibrated(model, size):
    """Measure the times of an iteration on this device; give the engine.

    A few tokens take `weights_s`, the most tokens that many `token_s`, and what a full
    cache takes more than an empty one is `cached_token_s` of each of its tokens.
    """
    engine = {name: size[name] for name in ("blocks", "most_tokens", "most_requests")}
    engine["block_tokens"] = BLOCK_TOKENS
    server = Server(model, engine)

    def iteration_s(count, tokens, cached):
        """Time requests of so many tokens, each with so many in the cache before."""
        times_s = []
        for _ in range(7):
            requests = [Request("", 0, [0] * (cached + tokens), 1, 1) for _ in count]
            for request in requests:
                server.reserve(request, cached + tokens)
                request.cached = cached
            server.iterate([(request, tokens) for request in requests])
            times_s.append(server.iterations[-1][2])
            for request in requests:
                server.release(request)
        # the first ones load kernels
        return statistics.median(times_s[2:])

    many = range(size["most_requests"])
    longest = min(
        size["prompt"][1] + size["output"][1] - 1,
        (size["blocks"] // len(many)) * BLOCK_TOKENS - 1,
    )
    engine["weights_s"] = iteration_s(many, 1, 0)
    most = min(size["prompt"][1], size["most_tokens"])
    engine["token_s"] = iteration_s(range(1), most, 0) / most
    more_s = iteration_s(many, 1, longest) - engine["weights_s"]
    engine["cached_token_s"] = max(0.0, more_s) / (len(many) * longest)
    engine["gap_s"] = GAP_ITERATIONS * engine["weights_s"]
    return engine


def figures(server, requests, served_s):
    """Give what a run was like: rates in tokens a second, times in seconds."""
    gaps = [
        after - before
        for request in requests
        for before, after in zip(request.times_s, request.times_s[1:], strict=False)
    ]
    firsts = [request.times_s[0] - request.arrived_s for request in requests]
    return {
        "tokens": sum(len(request.generated) for request in requests),
        "tokens_per_s": sum(len(request.generated) for request in requests) / served_s,
        "first_token_p95_s": percentile(firsts, 0.95),
        "gap_p99_s": percentile(gaps, 0.99),
        "iterations": len(server.iterations),
        "free_blocks": len(server.free),
    }


def percentile(values, part):
    """Give the value that this part of all, 0 to 1, does not exceed."""
    ordered = sorted(values)
    return ordered[min(len(ordered) - 1, int(part * len(ordered)))]


def made_model(size, device, dtype):
    """Make the model with the same random weights each time."""
    torch.manual_seed(0)
    places = size["prompt"][1] + size["output"][1]
    return Decoder(size, places).to(device, dtype).eval().requires_grad_(False)


def measure(source="answers.py", size=None, device=None, dtype=None):
    """Serve the same requests three ways: static, dynamic, and by your `schedule`.

    Args:
        source: the file with `schedule` and `iteration_s`.
        size: as `ON_GPU` and `ON_CPU`; which of the two fits, if left out.
        device: the first GPU, or the CPU where there is none.
        dtype: bfloat16 on a GPU, else float32.

    Returns:
        `engine`, with times that were measured here; `runs`, by the kind of batch;
        `predicted`, the time of your run by your `iteration_s` over that measured;
        `same`, the share of the tokens that are the same in all three.
    """
    device = torch.device(device or ("cuda" if torch.cuda.is_available() else "cpu"))
    size = size or (ON_GPU if device.type == "cuda" else ON_CPU)
    dtype = dtype or (torch.bfloat16 if device.type == "cuda" else torch.float32)
    model = made_model(size, device, dtype)
    engine = calibrated(model, size)
    answers = runpy.run_path(source)
    iterations = (size["output"][0] + size["output"][1]) / 8
    runs, texts = {}, []
    for kind, schedule in (
        ("static", Batches(size["requests"], float("inf"))),
        ("dynamic", Batches(size["requests"], iterations * engine["weights_s"])),
        ("in-flight", answers["schedule"]),
    ):
        server, requests = Server(model, engine), drawn(size, engine)
        runs[kind] = figures(server, requests, server.serve(requests, schedule))
        texts.append([token for request in requests for token in request.generated])
    predicted_s = sum(
        answers["iteration_s"](engine, tokens, cached)
        for tokens, cached, _ in server.iterations
    )
    measured_s = sum(seconds for *_, seconds in server.iterations)
    alike = sum(len(set(tokens)) == 1 for tokens in zip(*texts, strict=True))
    return {
        "device": str(device),
        "engine": engine,
        "runs": runs,
        "predicted": predicted_s / measured_s,
        "same": alike / len(texts[0]),
    }


def table(measured):
    """Write what was measured as text."""
    engine = measured["engine"]
    lines = [
        f"on {measured['device']}: weights {engine['weights_s'] * 1e3:.2f} ms, "
        f"token {engine['token_s'] * 1e6:.1f} µs, "
        f"cached token {engine['cached_token_s'] * 1e9:.1f} ns",
        f"{'':<10}{'tokens/s':>10}{'first p95':>12}{'gap p99':>12}{'iterations':>12}",
    ]
    lines += [
        f"{kind:<10}{run['tokens_per_s']:>10.0f}"
        f"{run['first_token_p95_s'] * 1e3:>9.1f} ms{run['gap_p99_s'] * 1e3:>9.2f} ms"
        f"{run['iterations']:>12}"
        for kind, run in measured["runs"].items()
    ]
    lines.append(
        f"in-flight, time by your iteration_s / measured: {measured['predicted']:.2f}; "
        f"the same tokens in all three: {share(measured['same'])}"
    )
    return "\n".join(lines)
