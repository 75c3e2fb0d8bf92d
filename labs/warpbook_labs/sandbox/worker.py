"""The process in the jail: it loads, is shut in, does one job, and ends.

    python -m warpbook_labs.sandbox.worker LIMITS EMPTY_FOLDER MODULE

MODULE does jobs of this kind. The job comes in, and the answer goes out, as msgpack.
"""

from __future__ import annotations

import importlib
import os
import sys
from pathlib import Path

import msgspec

from warpbook_labs.errors import NotInstalled
from warpbook_labs.sandbox.confinement import confine
from warpbook_labs.sandbox.work import Answer, Limits, Module

#: exit codes that the parent knows
OUT_OF_MEMORY, NO_COMPILER = 3, 4
#: comes first on stdout: what follows it, an exit code too, may be a learner's
READY = b"\1"


def main() -> None:
    limits = msgspec.json.decode(sys.argv[1], type=Limits)
    module: Module = importlib.import_module(sys.argv[3])
    try:
        module.prepare()
    except NotInstalled as problem:
        sys.stderr.write(str(problem))
        sys.exit(NO_COMPILER)
    os.write(1, READY)
    tier, is_filtered = confine(limits, Path(sys.argv[2]))
    try:
        job = msgspec.msgpack.decode(sys.stdin.buffer.read(), type=module.Job)
        answer = msgspec.msgpack.encode(Answer(tier, is_filtered, module.do(job)))
    except MemoryError:
        os._exit(OUT_OF_MEMORY)
    sys.stdout.buffer.write(answer)
    sys.stdout.buffer.flush()
    # nothing is left to be tidied up, and no file could be opened for it
    os._exit(0)


if __name__ == "__main__":
    main()
