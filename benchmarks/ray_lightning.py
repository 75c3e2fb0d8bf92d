"""Lightning on Ray Train: two workers beside one process, and workers that are killed.

    python -m benchmarks.ray_lightning [--epochs 8]

The module and its workers are the passage of the lab `tune-on-a-budget`, as it stands.
Two workers are to come to the weights of one process with the same global batch. Then
one of them is killed (SIGKILL) as soon as a checkpoint was acknowledged, and once more
some seconds after another; what was acknowledged should be there afterwards. On two
GPUs where there are two, else on the CPU by gloo. It needs `warpbook-labs[ray]`.
"""

from __future__ import annotations

import argparse
import os
import signal
import sys
import tempfile
import time
from pathlib import Path
from typing import Any

ROOT = Path(__file__).resolve().parent.parent
sys.path[:0] = [str(ROOT / name) for name in ("extension", "labs", "monitors")]

import lightning.pytorch as pl
import ray
import torch
from ray.train import FailureConfig, RunConfig, ScalingConfig
from ray.train.torch import TorchTrainer

from benchmarks.machine import describe_machine
from benchmarks.passages import run_passage

LAB, BEGIN = "tune-on-a-budget", "import os\n\nimport lightning"
WORKERS, BATCH = 2, 32
#: longer than Ray takes to look for reports
LONG_S = 10.0


def main() -> None:
    """Train one way and the other, kill, and print what is left."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--epochs", type=int, default=8)
    options = parser.parse_args()
    print(describe_machine(), f"Load at the begin {os.getloadavg()[0]:.1f}.")
    print(
        f"torch {torch.__version__}, Lightning {pl.__version__}, Ray {ray.__version__}"
    )
    here = {} if "RAY_ADDRESS" in os.environ else {"include_dashboard": False}
    ray.init(log_to_driver=False, **here)
    epochs = options.epochs
    kills = {epochs // 3: 0.0, 2 * epochs // 3: LONG_S}
    with tempfile.TemporaryDirectory() as folder:
        alone, alone_s = by_one_process(epochs)
        calm = by_workers(epochs, Path(folder) / "calm", {})
        killed = by_workers(epochs, Path(folder) / "killed", kills)
    print("\n| run | s | epochs that began, by rank 0 | from one process |")
    print("| --- | --- | --- | --- |")
    print(f"| one process, batches of {WORKERS * BATCH} | {alone_s:.1f} | | |")
    for name, run in (("two workers", calm), ("two workers, killed", killed)):
        off = max(
            float((run["weights"][key] - alone[key]).abs().max()) for key in alone
        )
        began = " ".join(map(str, run["began"]))
        print(f"| {name} | {run['seconds']:.1f} | {began} | {off:.1e} |")
    print(f"\nAcknowledged and lost: {lost(killed['began'])} of {epochs} checkpoints.")


def by_one_process(epochs: int) -> tuple[dict[str, torch.Tensor], float]:
    """Train in this process with the global batch; give the weights and seconds."""
    names = run_passage(LAB, BEGIN)
    pl.seed_everything(0)
    trainer = pl.Trainer(
        max_epochs=epochs,
        devices=1,
        logger=False,
        enable_checkpointing=False,
        enable_progress_bar=False,
        enable_model_summary=False,
    )
    net, begun_s = names["Net"](), time.perf_counter()
    trainer.fit(net, names["batches"](WORKERS * BATCH))
    weights = {name: data.cpu() for name, data in net.state_dict().items()}
    return weights, time.perf_counter() - begun_s


def by_workers(epochs: int, folder: Path, kills: dict[int, float]) -> dict[str, Any]:
    """Train on Ray's workers, of which rank 1 is killed in some epochs.

    Gives the weights by name, the seconds, the epochs that rank 0 began, in order, and
    how many workers were killed.

    Args:
        epochs: how many are trained.
        folder: for checkpoints, which all workers see.
        kills: by epoch, the seconds from its begin until the worker is killed, once.
    """
    names = run_passage(LAB, BEGIN)
    folder.mkdir()
    noted = folder / "began.txt"

    class Watched(names["Net"]):  # type: ignore[misc]
        def on_train_batch_start(self, batch: Any, number: int) -> None:
            epoch = self.current_epoch
            if number == 0 and self.global_rank == 0:
                with noted.open("a") as file:
                    file.write(f"{epoch}\n")
            mark = folder / f"killed-{epoch}"
            is_due = number == 0 and self.global_rank == 1 and epoch in kills
            if is_due and not mark.exists():
                mark.touch()
                time.sleep(kills[epoch])
                os.kill(os.getpid(), signal.SIGKILL)

    names["Net"] = Watched
    trainer = TorchTrainer(
        names["train_worker"],
        train_loop_config={"epochs": epochs, "batch": BATCH},
        scaling_config=ScalingConfig(
            num_workers=WORKERS, use_gpu=torch.cuda.device_count() >= WORKERS
        ),
        run_config=RunConfig(
            name="run",
            storage_path=str(folder),
            failure_config=FailureConfig(max_failures=len(kills)),
        ),
    )
    begun_s = time.perf_counter()
    result = trainer.fit()
    seconds = time.perf_counter() - begun_s
    with result.checkpoint.as_directory() as last:
        file = Path(last) / "checkpoint.ckpt"
        weights = torch.load(file, map_location="cpu", weights_only=False)["state_dict"]
    began = [int(line) for line in noted.read_text().split()]
    kills_done = len(list(folder.glob("killed-*")))
    return {
        "weights": weights,
        "seconds": seconds,
        "began": began,
        "kills": kills_done,
    }


def lost(began: list[int]) -> int:
    """Count epochs whose checkpoint was reported and that were trained once more.

    An epoch that began says that the one before it was acknowledged.
    """
    most, count = 0, 0
    for epoch in began:
        count += max(0, most - epoch)
        most = max(most, epoch)
    return count


if __name__ == "__main__":
    main()
