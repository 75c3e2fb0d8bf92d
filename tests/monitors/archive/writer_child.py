"""Writes frames to an archive until it is killed; says which seconds are on disk."""

import sys
import time
from pathlib import Path

from tests.monitors.archive.machine import DEVICES, frame
from warpbook_monitors.archive.archive import Archive


def main() -> None:
    archive = Archive(Path(sys.argv[1]))
    archive.start()
    seq = 0
    while True:
        time_ms = time.time() * 1000
        archive.append(frame(seq, time_ms), DEVICES)
        # told before the next comes, as a view is shown it at once
        sys.stdout.write(f"{time_ms}\n")
        sys.stdout.flush()
        # a busy machine takes its time to open a database: a kill is to find it at work
        while archive.keeping.state != "on":
            time.sleep(0.01)
        seq += 1
        time.sleep(0.01)


if __name__ == "__main__":
    main()
