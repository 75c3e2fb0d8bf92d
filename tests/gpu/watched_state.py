"""Code for a kernel that compares a person's state before and after all trials.

It leaves in `_states` a list for each `--try` and `--apply`: the keys of what differs.
"""

from __future__ import annotations

_CODE = """
import sys as _sys, torch as _torch
_sys.path.insert(0, ROOT)
from tests.extension.kernel.state_digest import digest as _digest
from warpbook.kernel.profile import applying as _applying
from warpbook.kernel.trying import trials as _trials
_states = []
def _watch(module, name):
    really = getattr(module, "_really", getattr(module, name))
    module._really = really
    def watched(shell, *arguments):
        def now():
            _torch.cuda.synchronize()
            seen = {k: v for k, v in shell.user_ns.items() if not k.startswith("_")}
            told = _digest(seen)
            told["GPU's random state"] = _torch.cuda.get_rng_state().tolist()
            return told
        before = now()
        try:
            return really(shell, *arguments)
        finally:
            after = now()
            _states.append([key for key in before.keys() | after.keys()
                            if before.get(key) != after.get(key)])
    setattr(module, name, watched)
_watch(_trials, "try_changes")
_watch(_applying, "apply_changes")
"""


def watched_state() -> str:
    """Give the code; it needs no name of the person's."""
    return _CODE.replace("ROOT", repr(__file__.rpartition("/tests/")[0]))
