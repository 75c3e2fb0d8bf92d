"""Runs Python programs one by one, each in a fork that has the libraries imported.

`python tests/forked_python.py MODULE...` imports the modules, reads a line of JSON for
each program from stdin (what follows `python` on a command line), and answers with one:
its exit status and its output. A program imports all of the tree anew.
"""

from __future__ import annotations

import importlib
import json
import os
import runpy
import sys
import tempfile


def main() -> None:
    for name in sys.argv[1:]:
        importlib.import_module(name)
    for line in sys.stdin:
        with tempfile.TemporaryFile() as output:
            child = os.fork()
            if not child:
                for stream in (1, 2):
                    os.dup2(output.fileno(), stream)
                # and it ends as it would by itself
                return run(json.loads(line))
            status = os.waitstatus_to_exitcode(os.waitpid(child, 0)[1])
            output.seek(0)
            printed = output.read().decode(errors="replace")
        sys.stdout.write(f"{json.dumps([status, printed])}\n")
        sys.stdout.flush()


def run(words: list[str]) -> None:
    if words[0] == "-m":
        sys.argv, sys.path[0] = words[1:], os.getcwd()
        runpy.run_module(words[1], run_name="__main__", alter_sys=True)
    else:
        sys.argv, sys.path[0] = words, os.path.dirname(words[0])
        runpy.run_path(words[0], run_name="__main__")


if __name__ == "__main__":
    main()
