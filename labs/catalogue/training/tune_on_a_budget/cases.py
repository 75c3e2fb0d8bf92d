"""A cluster that trains what a search decides, simulated run by run.

Curves are synthetic: drawn from a seed, by the formulas of the text. How far a loss
will still fall is known here alone.
"""

from __future__ import annotations

import math
import random
from functools import lru_cache
from statistics import median
from typing import Any

from msgspec import Struct

from warpbook_labs.lab.python.questions import Question

Numbers = dict[str, Any]
_TRIALS = 162
_LEAST_STEPS, _MOST_STEPS, _FACTOR = 5, 405, 3
#: the loss before the first step, and what most trainings come near
_BEGIN_LOSS, _PLAIN_LOSS = 4.0, 2.7
#: and so many times as far off as what our own search keeps
_BESIDE_OURS = 1.2
_MOST_DECISIONS = 4000
KEEP = 0


class _Scene(Struct, frozen=True):
    """What is drawn: a cluster, and how its trials learn."""

    gpus: int
    #: how far trials with a high learning rate are ahead at first
    crossing: float
    #: standard deviation of the loss of a whole training, which early ones exceed
    noise: float
    #: seconds of a step, the least and the most
    step_s: tuple[float, float]
    #: that fit into the lease, the least and the most
    whole_trainings: tuple[float, float] = (10, 10)
    #: of the way from the best trial to the median one, how far off the kept one may be
    margin: float = 0.35


_SCENES = {
    "one GPU": _Scene(1, 0.2, 0.015, (1.0, 1.0)),
    "curves that cross": _Scene(4, 0.4, 0.015, (0.9, 1.1)),
    "noisy losses": _Scene(4, 0.2, 0.025, (0.9, 1.1)),
    "steps of different cost": _Scene(8, 0.2, 0.015, (0.5, 2.0)),
    "many GPUs": _Scene(8, 0.3, 0.02, (0.9, 1.1)),
    "a short lease": _Scene(4, 0.2, 0.015, (0.5, 2.0), (3, 6), 1),
    "a lease too short for the pool": _Scene(4, 0.2, 0.015, (0.5, 2.0), (1, 2), 1),
}


class _Trial(Struct):
    """One training: its hidden curve, and how far it is."""

    name: str
    learning_rate: float
    step_s: float
    floor_loss: float
    #: steps after which half of the way to the floor is done
    half_steps: float
    steps: int = 0
    #: when its run is over, and at which step, if it runs
    ends_s: float | None = None
    target_steps: int = 0
    reports: list[tuple[int, float]] = []

    def loss(self, steps: int) -> float:
        """Give the validation loss without noise."""
        way = _BEGIN_LOSS - self.floor_loss
        return self.floor_loss + way / (1 + steps / self.half_steps)

    def shown(self) -> Numbers:
        """Give what a search may know."""
        return {
            "name": self.name,
            "learning_rate": self.learning_rate,
            "step_s": self.step_s,
            "steps": self.steps,
            "is_running": self.ends_s is not None,
            "reports": [list(report) for report in self.reports],
        }


def _drawn_trials(scene: _Scene, rng: random.Random) -> list[_Trial]:
    """Draw a pool: high rates learn faster, and end higher above the floor."""
    best_exponent = rng.uniform(-3.3, -2.7)
    trials = []
    for place in range(_TRIALS):
        exponent = rng.uniform(-4.5, -1.5)
        off = exponent - best_exponent
        # few are much better than most
        gain = min(rng.expovariate(1 / 0.25), 1.5)
        floor_loss = _PLAIN_LOSS - gain + 0.05 * off * off
        half_steps = 12 * 10 ** (-scene.crossing * off) * rng.uniform(0.7, 1.4)
        step_s = rng.uniform(*scene.step_s)
        rate = 10**exponent
        trials.append(_Trial(f"t{place}", rate, step_s, floor_loss, half_steps))
    return trials


class _Simulation:
    """A cluster that does what a search decides, and refuses what it can't do."""

    def __init__(self, scene: _Scene, seed: int) -> None:
        rng = random.Random(seed)
        self.scene, self.seed = scene, seed
        self.trials = {trial.name: trial for trial in _drawn_trials(scene, rng)}
        whole_s = _MOST_STEPS * sum(scene.step_s) / 2
        self.cluster = {
            "gpus": scene.gpus,
            "ends_s": rng.uniform(*scene.whole_trainings) * whole_s / scene.gpus,
            "least_steps": _LEAST_STEPS,
            "most_steps": _MOST_STEPS,
            "factor": _FACTOR,
        }
        self.now_s, self.decisions = 0.0, 0
        self.kept: _Trial | None = None
        #: the loss of what our own search keeps, once it is known
        self.our_loss = math.inf

    @property
    def running(self) -> list[_Trial]:
        """The trials that hold a GPU."""
        return [trial for trial in self.trials.values() if trial.ends_s is not None]

    def state(self) -> Numbers:
        """Give what a search sees."""
        return {
            "now_s": self.now_s,
            "free_gpus": self.cluster["gpus"] - len(self.running),
            "trials": [trial.shown() for trial in self.trials.values()],
        }

    def advance(self, decision: dict[str, int]) -> str:
        """Begin what is decided; say which rule it breaks, or nothing."""
        words = self._broken_rule(decision)
        if words:
            return f"At {self.now_s:,.0f} s, in decision {self.decisions}: {words}"
        self.decisions += 1
        for name, steps in decision.items():
            trial = self.trials[name]
            if steps == KEEP:
                self.kept = trial
                return ""
            trial.ends_s = self.now_s + steps * trial.step_s
            trial.target_steps = trial.steps + steps
        if not decision or len(self.running) == self.cluster["gpus"]:
            self._finish_next()
        return ""

    def _finish_next(self) -> None:
        """Let time pass until a run is over, and report its loss."""
        trial = min(self.running, key=lambda trial: trial.ends_s or 0.0)
        self.now_s = trial.ends_s or 0.0
        trial.steps, trial.ends_s = trial.target_steps, None
        # the same report whatever ran before it
        rng = random.Random(f"{self.seed}/{trial.name}/{trial.steps}")
        noise = self.scene.noise * math.sqrt(_MOST_STEPS / trial.steps)
        loss = trial.loss(trial.steps) + rng.gauss(0, noise)
        trial.reports.append((trial.steps, loss))

    def _broken_rule(self, decision: dict[str, int]) -> str:
        if self.decisions >= _MOST_DECISIONS:
            return f"it takes more than {_MOST_DECISIONS:,} decisions."
        if not decision and not self.running:
            return "nothing is begun and nothing runs: the GPUs would idle for ever."
        if KEEP in decision.values() and len(decision) > 1:
            return "a decision that keeps a trial has no other one beside it."
        free = self.cluster["gpus"] - len(self.running)
        if KEEP not in decision.values() and len(decision) > free:
            return f"{len(decision)} runs are begun; `free_gpus` is {free}."
        for name, steps in decision.items():
            words = self._broken_by(name, steps)
            if words:
                return words
        return ""

    def _broken_by(self, name: str, steps: int) -> str:
        trial = self.trials.get(name)
        if trial is None:
            return f"{name[:20]!r} is no trial of the pool."
        if trial.ends_s is not None:
            return f"{name} is running: it has no report yet, and can't be begun again."
        if steps == KEEP:
            return "" if trial.steps else f"{name} is kept, and was never trained."
        left = _MOST_STEPS - trial.steps
        if not 1 <= steps <= left:
            return f"{name} is to train {steps:,} steps, and 1 to {left:,} are left."
        over_s = self.now_s + steps * trial.step_s - self.cluster["ends_s"]
        if over_s > 0:
            return (
                f"{steps:,} steps of {name} end {over_s:,.1f} s after the lease, which "
                f"is over at {self.cluster['ends_s']:,.0f} s."
            )
        return ""

    def verdict(self) -> str:
        """Hold the trial that was kept against the pool."""
        assert self.kept is not None
        final = [trial.loss(_MOST_STEPS) for trial in self.trials.values()]
        best, middle = min(final), median(final)
        margin = max(
            self.scene.margin * (middle - best), _BESIDE_OURS * (self.our_loss - best)
        )
        loss, steps = self.kept.loss(self.kept.steps), self.kept.steps
        if loss <= best + margin:
            return ""
        return (
            f"The loss of the kept trial is {loss:.3f} after {steps:,} steps, without "
            f"noise; {best + margin:.3f} is allowed. The best trial of the pool comes "
            f"to {best:.3f}, the median one to {middle:.3f}."
        )


def _rungs(least_steps: int, most_steps: int, factor: int) -> list[int]:
    rungs = []
    while least_steps < most_steps:
        rungs.append(least_steps)
        least_steps *= factor
    return [*rungs, most_steps]


def _halving_steps(trials: int, least_steps: int, most_steps: int, factor: int) -> int:
    steps, before = 0, 0
    for rung in _rungs(least_steps, most_steps, factor):
        steps += trials * (rung - before)
        trials, before = max(1, trials // factor), rung
    return steps


def _decide(cluster: Numbers, state: Numbers) -> dict[str, int]:
    """Search as we do: asynchronous successive halving, until the lease is over."""
    rungs = _rungs(cluster["least_steps"], cluster["most_steps"], cluster["factor"])
    trials = state["trials"]

    def fits(trial: Numbers, steps: int) -> bool:
        return bool(state["now_s"] + steps * trial["step_s"] <= cluster["ends_s"])

    for place in reversed(range(len(rungs) - 1)):
        rung, following = rungs[place], rungs[place + 1]
        at = sorted(
            (loss, trial["name"])
            for trial in trials
            for steps, loss in trial["reports"]
            if steps == rung
        )
        best = {name for _, name in at[: len(at) // cluster["factor"]]}
        for trial in trials:
            ready = trial["steps"] == rung and not trial["is_running"]
            if ready and trial["name"] in best and fits(trial, following - rung):
                return {trial["name"]: following - rung}
    for trial in trials:
        is_new = not trial["steps"] and not trial["is_running"]
        if is_new and fits(trial, rungs[0]):
            return {trial["name"]: rungs[0]}
    if state["free_gpus"] < cluster["gpus"]:
        return {}
    last = [trial for trial in trials if trial["reports"]]
    return {min(last, key=lambda trial: trial["reports"][-1][1])["name"]: KEEP}


@lru_cache(64)
def _our_loss(scene: _Scene, seed: int) -> float:
    cluster = _Simulation(scene, seed)
    while cluster.kept is None:
        words = cluster.advance(_decide(cluster.cluster, cluster.state()))
        if words:
            raise RuntimeError(words)
    return cluster.kept.loss(cluster.kept.steps)


def questions(rng: random.Random) -> list[Question]:
    """Draw rungs to be counted, and two searches for each scene."""
    drawn = []
    for about, is_even in (("rungs that end at the last", True), ("any rungs", False)):
        factor, least = rng.randint(2, 5), rng.randint(1, 12)
        most = least * factor ** rng.randint(2, 4)
        if not is_even:
            most += rng.randint(1, most // 3)
        given = {"least_steps": least, "most_steps": most, "factor": factor}
        drawn.append(Question("rungs", given, about))
        # so few that at the last rungs one is left, or so many that none are lost
        trials = rng.randint(5, 7) if is_even else rng.randint(100, 400)
        drawn.append(Question("halving_steps", {"trials": trials, **given}, about))
    for about in (*_SCENES, *_SCENES):
        seed = rng.getrandbits(32)
        drawn.append(Question("search", {"scene": about, "seed": seed}, about))
    return drawn


def judge(question: Question, answer: Any) -> str:
    """Hold rungs and steps against what they are, the trial kept against the pool."""
    if question.function == "search":
        return answer.verdict()
    count = _rungs if question.function == "rungs" else _halving_steps
    right = count(**question.arguments)
    return "" if answer == right else f"Returned {answer}; expected {right}."


def advance(
    question: Question, cluster: _Simulation | None, decision: dict[str, int] | None
) -> tuple[_Simulation, Numbers | None, str]:
    """Do what a search decides, until it keeps a trial; or say which rule it breaks."""
    if cluster is None or decision is None:
        scene, seed = _SCENES[question.arguments["scene"]], question.arguments["seed"]
        cluster, words = _Simulation(scene, seed), ""
        cluster.our_loss = _our_loss(scene, seed)
    else:
        words = cluster.advance(decision)
    if words or cluster.kept is not None:
        return cluster, None, words
    return cluster, {"cluster": cluster.cluster, "state": cluster.state()}, ""
