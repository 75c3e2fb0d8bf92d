"""An endpoint with several models on one GPU, simulated batch by batch.

Requests are synthetic: drawn from a seed, with rates that are given below. Who comes
next is known here alone.
"""

from __future__ import annotations

import math
import random
from functools import lru_cache
from typing import Any

from msgspec import Struct

from warpbook_labs.lab.python.questions import Question

Numbers = dict[str, Any]
#: so many of a model's requests may be late, beside those that are with our batcher
_MORE_LATE = 0.05
#: a run ends when it took so many times as long as ours
_TOO_LONG = 3
_MOST_DECISIONS = 6000
_MOST_WAIT_MS = 10_000
WAIT = "wait_ms"


class _Scene(Struct, frozen=True):
    """What is drawn: models, and when requests for them come."""

    requests: int
    #: of a model each: requests a second, and how many come at once
    per_second: tuple[float, ...]
    at_once: int
    #: models that fit into the memory of the GPU
    slots: int
    #: seconds of a batch, of a request in it, and of loading a model
    fixed_s: float
    item_s: float
    load_s: float
    most_batch: int
    #: a request that takes longer is late
    slo_s: float


_SCENES = {
    "many requests": _Scene(600, (900.0,), 1, 1, 0.008, 0.0005, 0.0, 64, 0.06),
    "few requests": _Scene(120, (40.0,), 1, 1, 0.008, 0.0005, 0.0, 64, 0.06),
    "bursts": _Scene(600, (500.0,), 40, 1, 0.008, 0.0008, 0.0, 32, 0.15),
    "a model that is seldom asked": _Scene(
        600, (700.0, 12.0), 1, 2, 0.006, 0.0008, 0.0, 16, 0.08
    ),
    "more models than fit": _Scene(
        900, (300.0, 250.0, 30.0, 20.0), 1, 2, 0.006, 0.0008, 0.12, 32, 1.1
    ),
}


class _Simulation:
    """An endpoint that does what a batcher decides, and refuses what it can't do."""

    def __init__(self, scene: _Scene, seed: int) -> None:
        rng = random.Random(seed)
        names = [f"m{place}" for place in range(len(scene.per_second))]
        self.server = {
            "slo_s": scene.slo_s,
            "slots": scene.slots,
            "most_batch": scene.most_batch,
            "models": {
                name: {
                    "fixed_s": scene.fixed_s * rng.uniform(0.9, 1.1),
                    "item_s": scene.item_s * rng.uniform(0.9, 1.1),
                    "load_s": scene.load_s,
                }
                for name in names
            },
        }
        #: when each request of a model comes, the first one first
        self.coming: dict[str, list[float]] = {name: [] for name in names}
        whole = sum(scene.per_second)
        for name, rate in zip(names, scene.per_second, strict=True):
            at_s, count = 0.0, max(1, round(scene.requests * rate / whole))
            while len(self.coming[name]) < count:
                at_s += rng.expovariate(rate / scene.at_once)
                self.coming[name] += [at_s] * scene.at_once
        #: the model that was used longest ago first
        self.loaded: list[str] = names[: scene.slots]
        self.now_s, self.decisions = 0.0, 0
        self.latency_s: dict[str, list[float]] = {name: [] for name in names}
        #: what our own batcher comes to, once it is known
        self.our_late, self.our_whole_s = 0.0, math.inf
        self._go_on()

    def waiting(self, name: str) -> list[float]:
        """Give when each waiting request of a model came."""
        return [at_s for at_s in self.coming[name] if at_s <= self.now_s]

    @property
    def is_over(self) -> bool:
        return not any(self.coming.values())

    @property
    def late(self) -> float:
        """Give the share of late requests, of the model that has most of them."""
        return max(self.late_of(name) for name in self.latency_s)

    def late_of(self, name: str) -> float:
        """Give the share of a model's finished requests that took too long."""
        latencies_s, slo_s = self.latency_s[name], self.server["slo_s"]
        late = sum(latency_s > slo_s for latency_s in latencies_s)
        return late / max(1, len(latencies_s))

    def state(self) -> Numbers:
        """Give what a batcher sees."""
        return {
            "now_s": self.now_s,
            "loaded": list(self.loaded),
            "waiting": {name: self.waiting(name) for name in self.coming},
        }

    def advance(self, decision: dict[str, int]) -> str:
        """Do what is decided; say which rule it breaks, or nothing."""
        words = self._broken_rule(decision)
        if words:
            return f"At {self.now_s:.3f} s, in decision {self.decisions}: {words}"
        self.decisions += 1
        [(name, count)] = decision.items()
        if name == WAIT:
            next_s = self._next_s()
            self.now_s = min(self.now_s + count / 1e3, next_s)
            return ""
        model = self.server["models"][name]
        if name not in self.loaded:
            if len(self.loaded) == self.server["slots"]:
                self.loaded.pop(0)
            self.now_s += model["load_s"]
        else:
            self.loaded.remove(name)
        self.loaded.append(name)
        self.now_s += model["fixed_s"] + count * model["item_s"]
        done, self.coming[name] = self.coming[name][:count], self.coming[name][count:]
        self.latency_s[name] += [self.now_s - at_s for at_s in done]
        self._go_on()
        return ""

    def _next_s(self) -> float:
        later = [at for all_ in self.coming.values() for at in all_ if at > self.now_s]
        return min(later, default=math.inf)

    def _go_on(self) -> None:
        """Let time pass until somebody waits, if anybody is to come."""
        if not self.is_over and not any(self.waiting(name) for name in self.coming):
            self.now_s = self._next_s()

    def _broken_rule(self, decision: dict[str, int]) -> str:
        if self.decisions >= _MOST_DECISIONS:
            return f"it takes more than {_MOST_DECISIONS:,} decisions."
        if len(decision) != 1:
            return f"it decides {len(decision)} things; the GPU does one at a time."
        [(name, count)] = decision.items()
        if name == WAIT:
            if not 1 <= count <= _MOST_WAIT_MS:
                return f"it waits {count:,} ms; 1 to {_MOST_WAIT_MS:,} are allowed."
            return ""
        if name not in self.coming:
            return f"{name[:20]!r} is no model of this endpoint."
        most = min(len(self.waiting(name)), self.server["most_batch"])
        if not 1 <= count <= most:
            return (
                f"a batch of {count:,} for {name}; {len(self.waiting(name))} wait, and "
                f"`most_batch` is {self.server['most_batch']}."
            )
        return ""

    def verdict(self) -> str:
        """Hold a run that is over against that of our own batcher."""
        most = self.our_late + _MORE_LATE
        if self.late <= most:
            return ""
        name = max(self.latency_s, key=self.late_of)
        latencies_s = sorted(self.latency_s[name])
        p99_s = latencies_s[math.ceil(0.99 * len(latencies_s)) - 1]
        slo_ms = 1e3 * self.server["slo_s"]
        return (
            f"{100 * self.late:.0f} % of the requests for {name} take longer than "
            f"{slo_ms:.0f} ms; {100 * most:.0f} % is allowed. Their 99th percentile is "
            f"{1e3 * p99_s:,.0f} ms."
        )


def _decide(server: Numbers, state: Numbers) -> dict[str, int]:
    """Batch as we do: all that wait, whose time is shortest, and seldom a load."""
    slack_s, counts = {}, {}
    for name, waiting in state["waiting"].items():
        if not waiting:
            continue
        model = server["models"][name]
        counts[name] = min(len(waiting), server["most_batch"])
        takes_s = model["fixed_s"] + counts[name] * model["item_s"]
        if name not in state["loaded"]:
            takes_s += model["load_s"]
        slack_s[name] = waiting[0] + server["slo_s"] - state["now_s"] - takes_s
    # a load waits until it must, while others have work
    longest_s = max(model["load_s"] for model in server["models"].values())
    urgent = [
        name
        for name in slack_s
        if name in state["loaded"] or slack_s[name] < 1.5 * longest_s
    ]
    name = min(urgent or slack_s, key=lambda name: slack_s[name])
    return {name: counts[name]}


@lru_cache(64)
def _ours(scene: _Scene, seed: int) -> tuple[float, float]:
    """Give the late share of our own batcher, and when it is done."""
    endpoint = _Simulation(scene, seed)
    while not endpoint.is_over:
        words = endpoint.advance(_decide(endpoint.server, endpoint.state()))
        if words:
            raise RuntimeError(words)
    return endpoint.late, endpoint.now_s


def questions(rng: random.Random) -> list[Question]:
    """Draw batches to be counted, and an endpoint to be run for each scene."""
    drawn = []
    for about in ("a rate that needs batches", "any rate", "a rate that is too high"):
        model = {
            "fixed_s": rng.uniform(0.002, 0.02),
            "item_s": rng.uniform(0.0002, 0.002),
        }
        # of what batches without end would come to
        part = {"any rate": (0.02, 0.3), "a rate that is too high": (1.05, 2.0)}
        per_second = rng.uniform(*part.get(about, (0.5, 0.8))) / model["item_s"]
        given = {"model": model, "per_second": per_second}
        drawn.append(Question("least_batch", given, about))
    # one over a power of two is exact: nothing is left for the fixed time
    model = {"fixed_s": rng.uniform(0.002, 0.02), "item_s": 1 / 1024}
    given = {"model": model, "per_second": 1024.0}
    drawn.append(Question("least_batch", given, "a rate at the limit"))
    # twice that time is exact, too: `most` meet the rate, and fewer do not
    most = rng.randint(2, 20)
    model = {"fixed_s": most / 1024, "item_s": 1 / 1024}
    given = {"model": model, "per_second": 512.0}
    drawn.append(Question("least_batch", given, "a rate that a batch meets exactly"))
    for about in _SCENES:
        seed = rng.getrandbits(32)
        drawn.append(Question("batch", {"scene": about, "seed": seed}, about))
    return drawn


def judge(question: Question, answer: Any) -> str:
    """Hold the least batch against its definition."""
    model, per_second = (question.arguments[name] for name in ("model", "per_second"))
    idle = 1 - per_second * model["item_s"]
    right = math.ceil(per_second * model["fixed_s"] / idle) if idle > 0 else 0
    return "" if answer == right else f"Returned {answer:,}; expected {right:,}."


def advance(
    question: Question, endpoint: _Simulation | None, decision: dict[str, int] | None
) -> tuple[_Simulation, Numbers | None, str]:
    """Do what a batcher decides; judge the run when all requests are finished."""
    if endpoint is None or decision is None:
        scene, seed = _SCENES[question.arguments["scene"]], question.arguments["seed"]
        endpoint, words = _Simulation(scene, seed), ""
        endpoint.our_late, endpoint.our_whole_s = _ours(scene, seed)
    else:
        words = endpoint.advance(decision)
    if not words and endpoint.is_over:
        words = endpoint.verdict()
    elif not words and endpoint.now_s > _TOO_LONG * endpoint.our_whole_s:
        left = sum(len(times) for times in endpoint.coming.values())
        words = (
            f"At {endpoint.now_s:.3g} s {left:,} requests are still here; our batcher "
            f"has finished all of them at {endpoint.our_whole_s:.3g} s."
        )
    if words or endpoint.is_over:
        return endpoint, None, words
    return endpoint, {"server": endpoint.server, "state": endpoint.state()}, ""
