"""What can go wrong with labs, each with words that a person can act on.

LabError
├── BadLab           a lab can't be used: file and key, and what is wrong there
│   ├── NoLab        there is none of this name
│   ├── NotTrusted   it is somebody's, and the person has not said that they trust it
│   └── KeptApart    what it takes is not on this machine, on purpose
├── BadQuiz          a quiz can't be used, or an engine can't tell what is right
├── BadText          a text can't be used: file and key
├── NoText           there is no text of this name
├── SourceProblem    a learner's source can't be used: `line` says where
│   ├── BadSource    it is no source that could be checked
│   │   └── NotHere  a GPU may run it, and the check without one can't
│   └── BadRule      its launch rule can't be followed
├── NotInstalled     a compiler or PyTorch is not here; how to install it
├── TooBusy          the machine has no CPU time for it, so nothing is graded
├── NoGpu            no GPU can grade here
├── NotOnGpu         a GPU could not be used, for no fault of the source
├── NoTrace          a submission could not be recorded
├── NotPassed        the reference is shown after a pass
└── StoreError       the file of submissions can't be used

What fails within a jailed or trusted process has errors of its own there.
"""

from __future__ import annotations

#: brings what labs in Triton need
INSTALL_TRITON = "pip install 'warpbook-labs[triton]'"
#: brings what labs on host code need
INSTALL_TORCH = "pip install 'warpbook-labs[torch]'"


class LabError(Exception):
    """Anything that labs raise for a person to read."""


class BadLab(LabError):
    """A lab can't be used; the message names its file and what is wrong there."""


class NoLab(BadLab):
    """There is no lab of this name here."""


class NotTrusted(BadLab):
    """A lab of somebody's, of which the person has not said that they trust it."""


class KeptApart(BadLab):
    """What it takes is not on this machine, on purpose; the message says so."""


class BadQuiz(LabError):
    """A quiz can't be used; the message says which question, and why."""


class BadText(LabError):
    """A text can't be used; the message names its file and what is wrong."""


class NoText(LabError, LookupError):
    """There is no text of this name; the message names those there are."""


class SourceProblem(LabError, ValueError):
    """What is wrong with a source; the message begins with the line, if it has one."""

    def __init__(self, message: str, line: int | None = None) -> None:
        super().__init__(f"Line {line}: {message}" if line else message)
        self.line = line


class BadSource(SourceProblem):
    """It is no source that could be checked; the message says what to do."""


class NotHere(BadSource):
    """A GPU may run it, and the check without one can't; the message says what."""


class BadRule(SourceProblem):
    """The launch rule can't be followed; the message names the line."""


class NotInstalled(LabError):
    """A compiler or PyTorch is not here; the message says how to install it."""


class TooBusy(LabError):
    """This machine has no CPU time for it; the message says that it is not graded."""


class NoGpu(LabError):
    """None can grade here; the message says why."""


class NotOnGpu(LabError):
    """The GPU could not be used for it; the message says why."""


class NoTrace(LabError):
    """There is no trace of it; the message says why."""


class NotPassed(LabError):
    """The reference solution is not shown yet; the message says when it is."""


class StoreError(LabError):
    """The file can't be used; the message says why and what to do."""


class Missing(RuntimeError):
    """PyTorch has it, the simulated GPU has not."""
