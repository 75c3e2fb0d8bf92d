"""Grades as a source says, in place of the labs: `// right`, `// crash`, `// hang`."""

from __future__ import annotations

import os
import signal
import subprocess
import sys
import time
from hashlib import sha256
from pathlib import Path

import msgspec

from warpbook.hub_protocol import GradedFacts, JobOrder
from warpbook_hub.grader.engine import Graded, NotGraded

LAB_DIGEST = "ab" * 32


def main() -> None:
    order = msgspec.json.decode(sys.stdin.buffer.read(), type=JobOrder)
    words = order.source.split()
    what = words[1] if len(words) > 1 else "right"
    if what == "log":
        # what ran is noted, so that a test can count
        with open(words[2], "a") as log:
            gpu = os.environ["CUDA_VISIBLE_DEVICES"]
            log.write(f"{order.job} {order.fence} {gpu} {os.getpid()}\n")
    if what == "crash":
        os.kill(os.getpid(), signal.SIGSEGV)
    if what == "hang":
        # with a child of its own, in a session of its own
        nap_s = words[2] if len(words) > 2 else "611.5"
        subprocess.Popen(["sleep", nap_s], start_new_session=True)
        time.sleep(600)
    if what == "memory":
        block = bytearray(600 << 20)
        block[::4096] = b"x" * len(block[::4096])
        time.sleep(600)
    if what == "noise":
        sys.stdout.buffer.write(b"{}" * 10_000)
        return
    if what == "environment":
        sys.stderr.write(" ".join(sorted(os.environ)))
        sys.exit(3)
    if what == "slow":
        time.sleep(float(words[2]))
    if what == "until":
        while not Path(words[2]).exists():
            time.sleep(0.05)
    if what == "stages":
        # for so long on the CPU, and on the GPU
        time.sleep(float(words[2] if order.stage == "cpu" else words[3]))
    if what == "nowhere":
        outcome = NotGraded("there is no compiler here")
    else:
        is_wrong = what == "wrong"
        facts = GradedFacts(
            "wrong" if is_wrong else "right", what, "graded", 1 if is_wrong else 4, 4
        )
        digest = sha256(order.source.encode()).hexdigest()
        outcome = Graded(facts, LAB_DIGEST, digest, '{"card": null}')
    sys.stdout.buffer.write(msgspec.json.encode(outcome))


if __name__ == "__main__":
    main()
