"""An endpoint of Ray Serve, beside what the simulator of the lab says of it.

    python -m benchmarks.ray_serve [--scene NAME ...] [--part 1.0]

The requests are those of the lab `dynamic-batching`, one seed for each scene, and come
as many times more slowly as a full batch takes longer here than in the lab. The
simulator is given the times of batches and loads as they were in that run: their line
is measured before, and scaled by what the run's batches took in all. Policies are the
lab's reference, `@serve.batch` that computes on the endpoint's event loop or on a
thread beside it, and the same with Ray's own `max_ongoing_requests` of 5. On a GPU if
there is one. It needs `warpbook-labs[ray]`.
"""

from __future__ import annotations

import argparse
import os
import sys
import tempfile
from collections import Counter
from collections.abc import Callable
from pathlib import Path
from typing import Any

ROOT = Path(__file__).resolve().parent.parent
sys.path[:0] = [str(ROOT / name) for name in ("extension", "labs", "monitors")]

from benchmarks.lab_modules import module
from benchmarks.machine import describe_machine

Numbers = dict[str, Any]
LAB = ROOT / "labs" / "catalogue" / "serving" / "dynamic_batching"
SCENES = ("many requests", "few requests", "bursts", "more models than fit")
SEED = 29
#: of the time that a batch takes whatever its size
WAIT_PART = 0.25
DEFAULT_ONGOING = 5


def main() -> None:
    """Serve each scene by each policy, and print both tables as one."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--scene", action="append", choices=SCENES)
    parser.add_argument("--part", type=float, default=1.0, help="of the requests")
    options = parser.parse_args()
    given, lab = (
        module("serve_given", LAB / "given.py"),
        module("cases", LAB / "cases.py"),
    )
    reference = (LAB / "reference.py").read_text()
    print(describe_machine(), f"Load at the begin {os.getloadavg()[0]:.1f}.")
    given.start()
    with tempfile.TemporaryDirectory() as folder:
        given.write_models([f"m{number}" for number in range(4)], folder)
        model = given.service_times(Path(folder) / "m0")
        print(
            f"{given.device()}: a batch takes {1e3 * model['fixed_s']:.1f} ms and "
            f"{1e3 * model['item_s']:.2f} ms for each request, a load "
            f"{1e3 * model['load_s']:.0f} ms.\n\nMeasured, and (simulated):\n"
        )
        print("| scene | policy | p50, ms | p99, ms | late, % | batch | loads |")
        print("| --- | --- | --- | --- | --- | --- | --- |")
        for scene in options.scene or SCENES:
            begun = stretched(lab, scene, model, options.part)
            server = begun().server
            requests = sorted(
                (at_s, name) for name, all_ in begun().coming.items() for at_s in all_
            )
            wait_s = WAIT_PART * model["fixed_s"]
            by_you = given.by_you(folder, server, reference)
            policies = [("reference", by_you, lab._decide, False)]
            for name, on_thread, ongoing in (
                ("@serve.batch, on the loop", False, 1000),
                ("@serve.batch, on a thread", True, 1000),
                ("@serve.batch, 5 ongoing", False, DEFAULT_ONGOING),
            ):
                by_ray = given.by_ray(folder, server, wait_s, on_thread, ongoing)
                rule = OnThread(wait_s) if on_thread else OnLoop(wait_s, ongoing)
                policies.append((name, by_ray, rule, True))
            for name, application, rule, is_ray in policies:
                measured = given.replay(application, server, requests, is_ray)
                real = scaled(model, measured)
                endpoint = begun()
                endpoint.server["models"] = dict.fromkeys(endpoint.coming, real)
                print_row(scene, name, measured, simulated(given, endpoint, rule))
    given.serve.shutdown()


def stretched(
    lab: Any, scene: str, model: dict[str, float], part: float
) -> Callable[[], Any]:
    """Give what begins a lab's simulation of a scene with the times of a real model."""
    drawn = lab._SCENES[scene]
    lab_s = drawn.fixed_s + drawn.most_batch * drawn.item_s
    factor = (model["fixed_s"] + drawn.most_batch * model["item_s"]) / lab_s

    def begun() -> Any:
        endpoint = lab._Simulation(drawn, SEED)
        endpoint.server["slo_s"] *= factor
        endpoint.server["models"] = dict.fromkeys(endpoint.coming, model)
        endpoint.coming = {
            name: [factor * at_s for at_s in all_[: max(1, round(part * len(all_)))]]
            for name, all_ in endpoint.coming.items()
        }
        endpoint.loaded = list(endpoint.coming)[-endpoint.server["slots"] :]
        endpoint.now_s = 0.0
        endpoint._go_on()
        return endpoint

    return begun


def scaled(model: dict[str, float], run: Numbers) -> dict[str, float]:
    """Give a model's times as they were in a run, by what all of it took."""
    sizes = run["sizes"]
    alone_s = len(sizes) * model["fixed_s"] + sum(sizes) * model["item_s"]
    factor = run["compute_s"] / alone_s
    load_s = run["load_s"] / run["loads"] if run["loads"] else model["load_s"]
    return {
        "fixed_s": factor * model["fixed_s"],
        "item_s": factor * model["item_s"],
        "load_s": load_s,
    }


class OnLoop:
    """`@serve.batch` that blocks its event loop: what comes meanwhile is the next."""

    def __init__(self, wait_s: float, ongoing: int) -> None:
        """Take `batch_wait_timeout_s` and `max_ongoing_requests`."""
        self.wait_s, self.ongoing = wait_s, ongoing
        #: parts of a batch by model that are still to be computed
        self.parts: list[tuple[str, int]] = []
        #: when the first request of the next batch was taken
        self.taken_s: float | None = None

    def __call__(self, server: Numbers, state: Numbers) -> dict[str, int]:
        """Compute the rest of a batch, wait for more, or take the next one."""
        if not self.parts:
            requests = in_order(state)
            if self.taken_s is None:
                self.taken_s = state["now_s"]
            left_s = self.taken_s + self.wait_s - state["now_s"]
            if left_s > 1e-6 and len(requests) < server["most_batch"]:
                return {"wait_ms": max(1, round(1e3 * left_s))}
            self.taken_s = None
            self.parts = by_model(requests[: min(server["most_batch"], self.ongoing)])
        return dict([self.parts.pop(0)])


class OnThread:
    """`@serve.batch` that computes beside its loop: batches close while others run."""

    def __init__(self, wait_s: float) -> None:
        """Take `batch_wait_timeout_s`."""
        self.wait_s = wait_s
        self.parts: list[tuple[str, int]] = []

    def __call__(self, server: Numbers, state: Numbers) -> dict[str, int]:
        """Compute what came within the wait of the oldest request."""
        if not self.parts:
            requests = in_order(state)
            closes_s = requests[0][0] + self.wait_s
            batch = [one for one in requests if one[0] <= closes_s]
            batch = batch[: server["most_batch"]]
            left_s = closes_s - state["now_s"]
            if left_s > 1e-6 and len(batch) < server["most_batch"]:
                return {"wait_ms": max(1, round(1e3 * left_s))}
            self.parts = by_model(batch)
        return dict([self.parts.pop(0)])


def in_order(state: Numbers) -> list[tuple[float, str]]:
    """Give all waiting requests, the oldest one first."""
    return sorted(
        (at_s, name) for name, times in state["waiting"].items() for at_s in times
    )


def by_model(requests: list[tuple[float, str]]) -> list[tuple[str, int]]:
    """Split a batch by its models, as Ray Serve does."""
    return list(Counter(name for _, name in requests).items())


def simulated(given: Any, endpoint: Any, rule: Any) -> Numbers:
    """Run a rule in the lab's simulator; give a row as the real endpoint's."""
    sizes, loads = [], 0
    while not endpoint.is_over:
        decision = rule(endpoint.server, endpoint.state())
        [(name, count)] = decision.items()
        if name != "wait_ms":
            sizes.append(count)
            loads += name not in endpoint.loaded
        words = endpoint.advance(decision)
        if words:
            raise RuntimeError(words)
    latencies_s = [
        (name, latency_s)
        for name, all_ in endpoint.latency_s.items()
        for latency_s in all_
    ]
    noted = {"sizes": sizes, "loads": loads}
    row: Numbers = given.row(
        latencies_s, endpoint.now_s, endpoint.server["slo_s"], noted
    )
    return row


def print_row(scene: str, policy: str, measured: Numbers, expected: Numbers) -> None:
    """Print a line of the table: what was measured, and what the simulator says."""
    cells = [
        f"{factor * measured[key]:.{digits}f} ({factor * expected[key]:.{digits}f})"
        for key, factor, digits in (
            ("p50_s", 1e3, 0),
            ("p99_s", 1e3, 0),
            ("late", 100, 0),
            ("batch", 1, 1),
            ("loads", 1, 0),
        )
    ]
    print(f"| {scene} | {policy} | {' | '.join(cells)} |", flush=True)


if __name__ == "__main__":
    main()
