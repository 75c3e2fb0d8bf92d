"""A server for a language model, simulated iteration by iteration.

Requests are synthetic: drawn from a seed, with rates and lengths that are given below.
How long an output becomes is known here alone.
"""

from __future__ import annotations

import math
import random
from typing import Any

from msgspec import Struct

from warpbook_labs.lab.python.questions import Question

Numbers = dict[str, Any]
#: a model of 8 billion parameters in 16 bits, with 128 KiB of cache for a token, on a
#: GPU that reads 3.35 TB/s and sustains 500 TFLOP/s
_WEIGHTS_S = 16e9 / 3.35e12
_TOKEN_S = 16e9 / 500e12
_CACHED_TOKEN_S = 131_072 / 3.35e12
#: where fewer heads share keys and values
_SLOW_S = 8 * _CACHED_TOKEN_S
_BLOCK_TOKENS = 16
#: what is allowed beside the bounds of our own scheduler
_TTFT, _GAP, _THROUGHPUT = 1.25, 1.1, 0.92
#: a run ends when it took so many times as long as ours
_TOO_LONG = 2
#: so many others that came later may have their first token before a request
_MOST_OVERTAKEN = 16
_MOST_STEPS = 5000
_EXACT = 1e-6
EVICT = -1


class _Scene(Struct, frozen=True):
    """What is drawn: requests and when they come, and the engine that serves them."""

    requests: int
    #: seconds between two that follow each other, on average
    between_s: float
    #: tokens, the least and the most
    prompts: tuple[int, int]
    outputs: tuple[int, int]
    #: one request of so many has a prompt that is twenty times as long; 0: none
    long_one_of: int
    #: of the cache; 0: as many as the longest request needs
    blocks: int
    #: the gap between two tokens that is aimed at
    gap_s: float
    requests_at_once: int = 64
    most_tokens: int = 4096
    cached_token_s: float = _CACHED_TOKEN_S


_SCENES = {
    "short prompts": _Scene(60, 0.02, (20, 200), (20, 120), 0, 4000, 0.02),
    "long prompts among short ones": _Scene(
        48, 0.05, (50, 250), (30, 120), 6, 4000, 0.02
    ),
    "a small cache": _Scene(36, 0.01, (100, 400), (20, 400), 0, 260, 0.03),
    "a burst": _Scene(64, 0.0005, (50, 400), (20, 150), 0, 4000, 0.03),
    "few requests at once": _Scene(48, 0.01, (20, 300), (20, 160), 0, 4000, 0.02, 8),
    "few tokens at once": _Scene(
        48, 0.03, (50, 300), (20, 120), 0, 4000, 0.02, most_tokens=24
    ),
    "a cache that is slow to read": _Scene(
        24, 0.03, (1000, 3000), (200, 400), 0, 6000, 0.01, 64, 4096, _SLOW_S
    ),
    "a short gap": _Scene(80, 0.005, (50, 250), (60, 200), 0, 4000, 0.007),
    "few tokens and a small cache": _Scene(
        60, 0.02, (20, 60), (100, 300), 4, 150, 0.02, most_tokens=32
    ),
    "few requests and a small cache": _Scene(
        36, 0.01, (100, 400), (20, 300), 0, 160, 0.03, 8
    ),
    "a cache for the longest": _Scene(24, 0.03, (300, 900), (2, 16), 0, 0, 0.03),
}


class _Request(Struct):
    """One request and how far it is."""

    name: str
    arrived_s: float
    prompt: int
    output: int
    limit: int
    cached: int = 0
    #: when each token came
    token_s: list[float] = []

    @property
    def needs(self) -> int:
        """Tokens without keys and values in the cache."""
        return self.prompt + len(self.token_s) - self.cached

    @property
    def is_finished(self) -> bool:
        return len(self.token_s) == self.output

    def shown(self) -> Numbers:
        """Give what a scheduler may know."""
        return {
            "name": self.name,
            "arrived_s": self.arrived_s,
            "prompt_tokens": self.prompt,
            "limit_tokens": self.limit,
            "generated_tokens": len(self.token_s),
            "cached_tokens": self.cached,
        }


def _blocks(tokens: int) -> int:
    return -(-tokens // _BLOCK_TOKENS)


def _iteration_s(engine: Numbers, tokens: int, cached: int) -> float:
    """Give an iteration's time: weights are read while tokens are computed."""
    work_s = max(engine["weights_s"], tokens * engine["token_s"])
    return float(work_s + cached * engine["cached_token_s"])


class _Simulation:
    """A server that does what a scheduler decides, and refuses what it can't do."""

    def __init__(self, scene: _Scene, seed: int) -> None:
        rng = random.Random(seed)
        self.engine: Numbers = {
            "block_tokens": _BLOCK_TOKENS,
            "most_tokens": scene.most_tokens,
            "most_requests": scene.requests_at_once,
            "weights_s": _WEIGHTS_S,
            "token_s": _TOKEN_S,
            "cached_token_s": scene.cached_token_s,
            "gap_s": scene.gap_s,
        }
        self.now_s, self.steps = 0.0, 0
        #: figures of our own scheduler, once they are known
        self.bounds: dict[str, float] = {}
        self.requests: list[_Request] = []
        at_s = 0.0
        for place in range(scene.requests):
            prompt = rng.randint(*scene.prompts)
            if scene.long_one_of and place % scene.long_one_of == 1:
                prompt *= 20
            output = rng.randint(*scene.outputs)
            limit = 2 * scene.outputs[1]
            self.requests.append(_Request(f"r{place}", at_s, prompt, output, limit))
            at_s += rng.expovariate(1 / scene.between_s)
        # the last token is never in the cache
        most = max(one.prompt + one.output - 1 for one in self.requests)
        self.engine["blocks"] = scene.blocks or _blocks(most)

    @property
    def here(self) -> list[_Request]:
        """The requests that have arrived and are not finished, the first one first."""
        return [
            request
            for request in self.requests
            if request.arrived_s <= self.now_s and not request.is_finished
        ]

    @property
    def is_over(self) -> bool:
        return all(request.is_finished for request in self.requests)

    def state(self) -> Numbers:
        """Give what a scheduler sees."""
        here = self.here
        used = sum(_blocks(request.cached) for request in here)
        return {
            "now_s": self.now_s,
            "free_blocks": self.engine["blocks"] - used,
            "requests": [request.shown() for request in here],
        }

    def advance(self, decision: dict[str, int]) -> str:
        """Do one iteration; say which rule it breaks, or nothing."""
        here = {request.name: request for request in self.here}
        words = self._broken_rule(decision, here)
        if words:
            return f"At {self.now_s:.3f} s, in iteration {self.steps}: {words}"
        self.steps += 1
        for name, tokens in decision.items():
            if tokens == EVICT:
                here[name].cached = 0
        batch = {name: tokens for name, tokens in decision.items() if tokens != EVICT}
        if not batch:
            return self._wait()
        for name, tokens in batch.items():
            here[name].cached += tokens
        cached = sum(here[name].cached for name in batch)
        self.now_s += _iteration_s(self.engine, sum(batch.values()), cached)
        for name in batch:
            if here[name].needs == 0:
                here[name].token_s.append(self.now_s)
        if not self.here and not self.is_over:
            self._wait()
        return ""

    def _wait(self) -> str:
        """Let time pass until the next request comes."""
        later = [request for request in self.requests if request.arrived_s > self.now_s]
        if not later:
            return (
                f"Nothing is computed in iteration {self.steps}, and no request is to "
                f"come: the {len(self.here)} that are here would wait for ever."
            )
        self.now_s = later[0].arrived_s
        return ""

    def _broken_rule(self, decision: dict[str, int], here: dict[str, _Request]) -> str:
        if self.steps >= _MOST_STEPS:
            return f"it takes more than {_MOST_STEPS:,} iterations."
        for name, tokens in decision.items():
            if name not in here:
                words = "has not arrived, is finished, or is none at all"
                return f"{name[:20]!r} {words}: a scheduler knows `requests` alone."
            needs = here[name].needs
            if tokens != EVICT and not 1 <= tokens <= needs:
                words = f"it has {needs:,} that are not in the cache"
                return f"{name} is given {tokens:,} tokens, and {words}."
        batch = {name: tokens for name, tokens in decision.items() if tokens != EVICT}
        if sum(batch.values()) > self.engine["most_tokens"]:
            most = self.engine["most_tokens"]
            return f"{sum(batch.values()):,} tokens; `most_tokens` is {most:,}."
        if len(batch) > self.engine["most_requests"]:
            most = self.engine["most_requests"]
            return f"{len(batch)} requests in a batch; `most_requests` is {most}."
        used = sum(
            _blocks(request.cached + batch.get(name, 0))
            for name, request in here.items()
            if decision.get(name) != EVICT
        )
        if used > self.engine["blocks"]:
            most = self.engine["blocks"]
            return f"it takes {used:,} blocks of the cache; there are {most:,}."
        return ""

    def figures(self) -> dict[str, float]:
        """Give the figures that count, of a run that is over."""
        first = [request.token_s[0] - request.arrived_s for request in self.requests]
        gaps = [
            later - earlier
            for request in self.requests
            for earlier, later in zip(
                request.token_s, request.token_s[1:], strict=False
            )
        ]
        tokens = sum(request.output for request in self.requests)
        began = [request.token_s[0] for request in self.requests]
        overtaken = max(
            sum(later < first for later in began[place:])
            for place, first in enumerate(began)
        )
        return {
            "overtaken": overtaken,
            "ttft_s": _percentile(first, 95),
            "gap_s": _percentile(gaps, 99),
            "tokens_per_s": tokens / self.now_s,
            "whole_s": self.now_s,
        }


def _percentile(values: list[float], percent: int) -> float:
    place = math.ceil(len(values) * percent / 100) - 1
    return sorted(values)[place]


def _decide(engine: Numbers, state: Numbers) -> dict[str, int]:
    """Schedule as our own server does: the bounds are what this comes to.

    Requests that generate go first, then prompts in pieces, as many tokens as the aim
    for gaps allows; who came last is evicted where the cache is full.
    """
    requests, free = state["requests"], state["free_blocks"]
    decision: dict[str, int] = {}

    def missing(request: Numbers) -> int:
        made = request["prompt_tokens"] + request["generated_tokens"]
        return int(made - request["cached_tokens"])

    def wants(request: Numbers, tokens: int) -> int:
        held = _blocks(request["cached_tokens"])
        return _blocks(request["cached_tokens"] + tokens) - held

    started = [request for request in requests if request["cached_tokens"]]
    running = [request for request in started if missing(request) == 1]
    kept = list(running)
    while sum(wants(request, 1) for request in kept) > free and started:
        last = started.pop()
        decision[last["name"]] = EVICT
        free += _blocks(last["cached_tokens"])
        kept = [request for request in kept if request is not last]
    kept = kept[: engine["most_requests"]]
    for request in kept:
        decision[request["name"]] = 1
        free -= wants(request, 1)
    cached = sum(request["cached_tokens"] + 1 for request in kept)
    budget = (engine["gap_s"] - cached * engine["cached_token_s"]) / engine["token_s"]
    budget = min(int(0.9 * budget), engine["most_tokens"]) - len(kept)
    # an eviction says that the cache is full: nobody is let in
    if EVICT in decision.values():
        return decision
    slots = engine["most_requests"] - max(len(kept), len(started))
    for request in requests:
        if request["name"] in decision or budget <= 0:
            continue
        is_new = not request["cached_tokens"]
        whole = missing(request)
        # room for a block more of everybody who generates
        if is_new and (slots <= 0 or wants(request, whole) > free - len(kept)):
            break
        tokens = min(whole, budget)
        if wants(request, tokens) > free:
            break
        decision[request["name"]] = tokens
        budget -= tokens
        free -= wants(request, whole) if is_new else wants(request, tokens)
        slots -= is_new
    return decision


def _bounds(scene: _Scene, seed: int) -> dict[str, float]:
    server = _Simulation(scene, seed)
    while not server.is_over:
        words = server.advance(_decide(server.engine, server.state()))
        if words:
            raise RuntimeError(words)
    return server.figures()


def questions(rng: random.Random) -> list[Question]:
    """Draw batches to be counted, and a server to be run for each scene."""
    drawn = []
    for _ in range(2):
        lengths = [rng.randint(1, 900) for _ in range(rng.randint(3, 12))]
        drawn.append(Question("padding_share", {"prompts": lengths}, "prompts"))
        lengths = [rng.randint(1, 400) for _ in range(rng.randint(3, 12))]
        drawn.append(Question("idle_share", {"outputs": lengths}, "outputs"))
    alone = [rng.randint(1, 400)]
    drawn.append(Question("padding_share", {"prompts": alone}, "one prompt"))
    drawn.append(Question("idle_share", {"outputs": alone}, "one output"))
    # on slow GPUs a few tokens take as long as the weights, on fast ones many
    for about, times, part in (
        ("few tokens, on a slow GPU", (4, 16), (0.1, 0.9)),
        ("tokens that take longer than weights", (4, 16), (1.1, 8)),
        ("many tokens, on a fast GPU", (1 / 8, 1 / 2), (0.1, 0.9)),
    ):
        engine = _Simulation(_SCENES["a burst"], 0).engine
        engine["token_s"] *= rng.uniform(*times)
        tokens = round(rng.uniform(*part) * engine["weights_s"] / engine["token_s"])
        given = {"tokens": max(tokens, 1), "cached": rng.randint(0, 10**6)}
        drawn.append(Question("iteration_s", {"engine": engine, **given}, about))
    for about in _SCENES:
        seed = rng.getrandbits(32)
        drawn.append(Question("schedule", {"scene": about, "seed": seed}, about))
    return drawn


def judge(question: Question, answer: Any) -> str:
    """Hold a count against its formula."""
    given = question.arguments
    if question.function == "iteration_s":
        right = _iteration_s(given["engine"], given["tokens"], given["cached"])
    else:
        [lengths] = given.values()
        right = 1 - sum(lengths) / (len(lengths) * max(lengths))
    if math.isclose(answer, right, rel_tol=_EXACT, abs_tol=1e-12):
        return ""
    return f"Returned {answer:.6g}; expected {right:.6g}."


def advance(
    question: Question, server: _Simulation | None, decision: dict[str, int] | None
) -> tuple[_Simulation, Numbers | None, str]:
    """Do what a scheduler decides; judge the run when all requests are finished."""
    scene, seed = _SCENES[question.arguments["scene"]], question.arguments["seed"]
    if server is None or decision is None:
        server, words = _Simulation(scene, seed), ""
        server.bounds = _bounds(scene, seed)
    else:
        words = server.advance(decision)
    if not words and server.is_over:
        words = _verdict(server)
    elif not words and server.now_s > _TOO_LONG * server.bounds["whole_s"]:
        words = (
            f"At {server.now_s:.3g} s {len(server.here)} requests are still here; our "
            f"scheduler has finished all of them at {server.bounds['whole_s']:.3g} s."
        )
    if words or server.is_over:
        return server, None, words
    return server, {"engine": server.engine, "state": server.state()}, ""


def _verdict(server: _Simulation) -> str:
    figures, bounds = server.figures(), server.bounds
    if figures["overtaken"] > _MOST_OVERTAKEN:
        return (
            f"{figures['overtaken']:.0f} requests that came later have their first "
            f"token before one that came earlier; {_MOST_OVERTAKEN} may."
        )
    most_ttft_s = _TTFT * bounds["ttft_s"]
    if figures["ttft_s"] > most_ttft_s:
        return (
            "The 95th percentile of the time to first token is "
            f"{figures['ttft_s']:.3g} s; {most_ttft_s:.3g} s is allowed."
        )
    most_gap_s = max(server.engine["gap_s"], _GAP * bounds["gap_s"])
    if figures["gap_s"] > most_gap_s:
        return (
            "The 99th percentile of the time between two tokens is "
            f"{1e3 * figures['gap_s']:.3g} ms; {1e3 * most_gap_s:.3g} ms is allowed."
        )
    least = _THROUGHPUT * bounds["tokens_per_s"]
    if figures["tokens_per_s"] < least:
        return (
            f"It generates {figures['tokens_per_s']:,.0f} tokens a second; "
            f"{least:,.0f} are asked for."
        )
    return ""
