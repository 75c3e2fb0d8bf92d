"""Searches of real trainings on Ray, beside what the lab's simulator says of them.

    python -m benchmarks.ray_tune [--trials 162] [--curves FILE]

The lab's reference search, ASHA as Ray Tune has it, and trainings to the end, on the
small networks of the lab `tune-on-a-budget`: on GPUs, or on cores where there are none.
Then the lab's simulator runs the same searches on curves and step times that were
measured here. `--curves` keeps the curves of all trials, which take the longest, and
reads them where the file is there. Last, the searches run on pools that the lab draws,
where "well enough" is the lab's own verdict. It needs `warpbook-labs[ray]`.
"""

from __future__ import annotations

import argparse
import os
import sys
from collections.abc import Callable
from pathlib import Path
from statistics import mean
from types import ModuleType
from typing import Any

ROOT = Path(__file__).resolve().parent.parent
sys.path[:0] = [str(ROOT / name) for name in ("extension", "labs", "monitors")]

import msgspec
import numpy as np

from benchmarks.lab_modules import module
from benchmarks.machine import describe_machine

LAB = ROOT / "labs" / "catalogue" / "training" / "tune_on_a_budget"
Numbers = dict[str, Any]
#: validation and test loss of a trial by its name, at each rung
Curves = dict[str, dict[int, tuple[float, float]]]


def main() -> None:
    """Search for real, simulate the same, and print both."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--trials", type=int, default=162)
    parser.add_argument("--curves", type=Path)
    options = parser.parse_args()
    given = module("tune_given", LAB / "given.py")
    reference = module("tune_reference", LAB / "reference.py")
    print(describe_machine(), f"Load at the begin {os.getloadavg()[0]:.1f}.\n")
    given.start()
    pool = given.pool(options.trials)
    slots, step_s, start_s = given.begin_slots()
    cluster = given.lease(pool, step_s, len(slots))
    by_us = given.search_by(reference.search, pool, slots, step_s, start_s, cluster)
    curves = all_curves(given, pool, slots, options.curves)
    for slot in slots:
        given.ray.kill(slot)
    ends_s = cluster["ends_s"]
    rows = {
        "reference": by_us,
        "ASHA of Ray Tune": given.search_by_tune(pool, ends_s),
        "each to the end": given.search_by_tune(pool, ends_s, False),
    }
    print(f"{len(slots)} slots, a lease of {ends_s:.1f} s, {options.trials} trials.\n")
    print_rows(rows, curves)
    searches = {
        "reference": lambda: reference.search,
        "ASHA of Ray Tune": StopsAtRungs,
        "each to the end": lambda: to_the_end,
    }
    print("\nSimulated, with the curves and step times that were measured:\n")
    simulated = {
        name: simulate(given, begin(), pool, step_s, cluster, curves)
        for name, begin in searches.items()
    }
    print_rows(simulated, curves)
    print("\nOn the scenes of the lab, four pools of each:\n")
    print("| search | well enough | mean rank | of the lease | idle |")
    print("| --- | --- | --- | --- | --- |")
    for name, begin in searches.items():
        print_scenes(name, begin)


def all_curves(
    given: ModuleType, pool: list[Numbers], slots: list[Any], file: Path | None
) -> Curves:
    """Train every trial to the end, from rung to rung, or read what was kept."""
    if file and file.exists():
        return msgspec.json.decode(file.read_bytes(), type=Curves)
    curves: Curves = {trial["name"]: {} for trial in pool}
    rungs = given.rungs()
    ahead = list(zip([0, *rungs], rungs, strict=False))
    free, running = list(slots), {}
    waiting = [(trial, ahead, None) for trial in pool]
    while waiting or running:
        while waiting and free:
            slot, (trial, legs, checkpoint) = free.pop(), waiting.pop()
            (begin, end), *left = legs
            run = slot.run.remote(trial, checkpoint, end - begin)
            running[run] = slot, trial, end, left
        [done], _ = given.ray.wait(list(running))
        slot, trial, end, left = running.pop(done)
        free.append(slot)
        checkpoint, validation, test, _ = given.ray.get(done)
        curves[trial["name"]][end] = validation, test
        if left:
            waiting.append((trial, left, checkpoint))
    if file:
        file.write_bytes(msgspec.json.encode(curves))
    return curves


class StopsAtRungs:
    """ASHA as Ray Tune has it: who is not good enough on arrival is stopped."""

    def __init__(self) -> None:
        """Begin without reports."""
        self.arrived: dict[int, dict[str, float]] = {}
        self.stopped: set[str] = set()

    def __call__(self, cluster: Numbers, state: Numbers) -> dict[str, int]:
        """Let a trial go on from its rung, or begin the next one of the pool."""
        idle = [trial for trial in state["trials"] if not trial["is_running"]]
        for trial in idle:
            steps, name = trial["steps"], trial["name"]
            at_rung = self.arrived.setdefault(steps, {})
            if steps and name not in at_rung:
                loss = trial["reports"][-1][1]
                share = 100 / cluster["factor"]
                before = list(at_rung.values())
                if before and loss > np.percentile(before, share):
                    self.stopped.add(name)
                at_rung[name] = loss
        # a trial keeps its process until it is stopped
        idle.sort(key=lambda trial: not trial["steps"])
        for trial in idle:
            steps = trial["steps"] or 0
            following = min(steps * cluster["factor"], cluster["most_steps"])
            run = (following or cluster["least_steps"]) - steps
            fits = state["now_s"] + run * trial["step_s"] <= cluster["ends_s"]
            if run and fits and trial["name"] not in self.stopped:
                return {trial["name"]: run}
        return kept(state)


def to_the_end(cluster: Numbers, state: Numbers) -> dict[str, int]:
    """Train each trial to the end, in the order of the pool."""
    for trial in state["trials"]:
        run = cluster["most_steps"] - trial["steps"]
        fits = state["now_s"] + run * trial["step_s"] <= cluster["ends_s"]
        if run and fits and not trial["is_running"]:
            return {trial["name"]: run}
    return kept(state)


def kept(state: Numbers) -> dict[str, int]:
    """Wait for who runs; then keep the trial whose last report is the least."""
    if any(trial["is_running"] for trial in state["trials"]):
        return {}
    trained = [trial for trial in state["trials"] if trial["reports"]]
    best = min(trained, key=lambda trial: trial["reports"][-1][1])
    return {best["name"]: 0}


def simulate(
    given: ModuleType,
    search: Any,
    pool: list[Numbers],
    step_s: dict[int, float],
    cluster: Numbers,
    curves: Curves,
) -> Numbers:
    """Run a search in the lab's simulator, on curves that were measured."""
    lab = module("tune_cases", LAB / "cases.py")

    class Measured(lab._Trial):  # type: ignore[name-defined,misc]
        def loss(self, steps: int) -> float:
            return curves[self.name][steps][0]

    by_name = {trial["name"]: trial for trial in pool}
    simulation = lab._Simulation(lab._Scene(cluster["gpus"], 0, 0, (1, 1)), 0)
    simulation.cluster = cluster
    simulation.trials = {
        name: Measured(name, trial["learning_rate"], step_s[trial["width"]], 0, 0)
        for name, trial in by_name.items()
    }
    while simulation.kept is None:
        words = simulation.advance(search(cluster, simulation.state()))
        if words:
            raise RuntimeError(words)
    steps = {name: trial.steps for name, trial in simulation.trials.items()}
    name = simulation.kept.name
    trained_s = sum(steps[trial["name"]] * step_s[trial["width"]] for trial in pool)
    held_s = cluster["gpus"] * simulation.now_s
    row: Numbers = given.row(
        name, curves[name][steps[name]][1], steps, held_s, trained_s
    )
    return row


def print_scenes(name: str, begin: Callable[[], Any]) -> None:
    """Run a search on drawn pools of all scenes of the lab; print a line."""
    lab = module("tune_cases", LAB / "cases.py")
    passed, ranks, used, idle = 0, [], [], []
    pools = [(scene, seed) for scene in lab._SCENES.values() for seed in range(4)]
    for scene, seed in pools:
        simulation, search = lab._Simulation(scene, seed), begin()
        simulation.our_loss = lab._our_loss(scene, seed)
        while simulation.kept is None:
            words = simulation.advance(search(simulation.cluster, simulation.state()))
            if words:
                raise RuntimeError(words)
        passed += not simulation.verdict()
        loss = simulation.kept.loss(simulation.kept.steps)
        trials = simulation.trials.values()
        most_steps = simulation.cluster["most_steps"]
        ranks.append(1 + sum(trial.loss(most_steps) < loss for trial in trials))
        used.append(simulation.now_s / simulation.cluster["ends_s"])
        trained_s = sum(trial.steps * trial.step_s for trial in trials)
        idle.append(1 - trained_s / simulation.now_s / simulation.cluster["gpus"])
    print(
        f"| {name} | {passed} of {len(pools)} | {mean(ranks):.1f} "
        f"| {100 * mean(used):.0f} % | {100 * mean(idle):.0f} % |"
    )


def print_rows(rows: dict[str, Numbers], curves: Curves) -> None:
    """Print searches as a table; a rank is among all trials at their ends."""
    final = [max(curve.items())[1][1] for curve in curves.values()]
    print(
        "| search | keeps | test loss | rank | begun | steps | held, s | wasted, s |\n"
        "| --- | --- | --- | --- | --- | --- | --- | --- |"
    )
    for name, row in rows.items():
        rank = 1 + sum(loss < row["test_loss"] for loss in final)
        wasted_s = row["held_s"] - row["trained_s"]
        print(
            f"| {name} | {row['kept']}, {row['kept_steps']} steps "
            f"| {row['test_loss']:.3f} | {rank} | {row['begun']} | {row['steps']:,} "
            f"| {row['held_s']:.1f} | {wasted_s:.1f} |"
        )


if __name__ == "__main__":
    main()
