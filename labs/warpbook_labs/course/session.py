"""What a learner does with a lab: find it, check, submit.

Which folders of labs the person trusts: those of others are asked about once.

A lab's own Python runs in the jail whoever wrote it. Its text, pictures and notebook
are put beside the person's own, and its kernels run on their GPU.
"""

from __future__ import annotations

import os
import secrets
import shlex
from hashlib import sha256
from pathlib import Path
from typing import Literal

import msgspec
from msgspec import Struct
from msgspec.structs import replace

from warpbook_labs.course.store import Store
from warpbook_labs.errors import KeptApart, NoLab, NotTrusted, TooBusy
from warpbook_labs.grading.table import grader_of
from warpbook_labs.lab.catalogues import folder_of, is_installed
from warpbook_labs.lab.files import VAULT
from warpbook_labs.lab.loaded import LoadedLab, Submission
from warpbook_labs.lab.loader import load, refuse_taken
from warpbook_labs.results.check import CheckResult, Provenance
from warpbook_labs.sandbox.work import Limits
from warpbook_monitors._version import __version__
from warpbook_monitors.data_folder import data_folder

_FILE_NAME = "trusted_labs.json"
_MOST_BYTES = 1 << 20
_decode = msgspec.json.Decoder(tuple[str, ...]).decode


def is_trusted(folder: Path) -> bool:
    """Whether the person has said that they trust a lab in this folder."""
    return str(folder.resolve()) in _trusted()


def trust(folder: Path) -> None:
    """Note that the person trusts what is in a folder.

    Raises:
        OSError: it can't be written.
    """
    file = data_folder() / _FILE_NAME
    file.parent.mkdir(mode=0o700, parents=True, exist_ok=True)
    folders = sorted({*_trusted(), str(folder.resolve())})
    new = file.with_name(f"{file.name}.{os.getpid()}")
    new.write_bytes(msgspec.json.encode(folders))
    new.chmod(0o600)
    os.replace(new, file)


def _trusted() -> tuple[str, ...]:
    try:
        with (data_folder() / _FILE_NAME).open("rb") as file:
            return _decode(file.read(_MOST_BYTES))
    except (OSError, msgspec.MsgspecError, UnicodeDecodeError):
        # what can't be read trusts nobody
        return ()


#: SQLite keeps whole numbers of 64 bits with a sign
_SEED_BITS = 62


class Interrupted(KeyboardInterrupt):
    """Grading was interrupted; the message says how it is done later."""

    def __init__(self, submission: int, message: str) -> None:
        super().__init__(message)
        self.submission = submission


class Graded(Struct, frozen=True):
    """The result of a check or a submission, and how it was graded."""

    result: CheckResult
    passed: bool
    #: "practice" is kept nowhere; "self-graded": on the learner's own machine, where
    #: nothing keeps them from reading or changing the grader
    grading: Literal["practice", "self-graded"]
    #: its id in the store
    submission: int | None = None
    #: among the submissions of its lab, from 1
    number: int | None = None


def find(name: str, catalogue: Path | None = None) -> LoadedLab:
    """Load a lab by its id or its folder.

    Raises:
        NoLab: there is none.
        NotTrusted: it is in a folder of somebody's, and the person was not asked yet.
        BadLab: it can't be used, or takes an id of the catalogue.
    """
    if (Path(name) / "lab.toml").is_file():
        return _foreign(Path(name).resolve(), catalogue)
    folder = folder_of(name, catalogue)
    if folder is not None:
        return load(folder)
    raise NoLab(f"There is no lab `{name}`: `warpbook labs list` names them.")


def _foreign(folder: Path, catalogue: Path | None) -> LoadedLab:
    """Load a lab by its folder, which may be anybody's."""
    if is_installed(folder) or (catalogue and folder.is_relative_to(catalogue)):
        return load(folder)
    if not is_trusted(folder):
        raise NotTrusted(
            f"{folder}: this lab does not come with warpbook. What it computes runs in "
            "a jail; its notebook and its kernels run as yours. Look through it, then: "
            f"warpbook labs trust {shlex.quote(str(folder))}"
        )
    loaded = load(folder)
    # what is handed in is kept by the lab's id
    refuse_taken(loaded, catalogue, ("id",))
    return loaded


def get_ready(loaded: LoadedLab) -> None:
    """Start what checks of a lab take, so that the first one does not wait for it."""
    grader_of(loaded.lab).get_ready()


def check_public(
    loaded: LoadedLab,
    source: str,
    limits: Limits | None = None,
    use_gpu: bool = True,
) -> Graded:
    """Check against the cases that the lab shows; nothing is kept."""
    result = _graded(Submission(loaded, source, None, limits, use_gpu))
    return Graded(result, result.status == "passed", "practice")


def submit(
    store: Store,
    loaded: LoadedLab,
    source: str,
    limits: Limits | None = None,
    use_gpu: bool = True,
) -> Graded:
    """Keep a submission, then grade it with cases drawn for it alone.

    Raises:
        BadSource: it is no source that could be checked; it is not kept.
        BadLab: it is kept, but the lab's own Python fails.
        StoreError: it could not be kept.
        NotInstalled: it is kept, and can be graded once NVRTC is installed.
        KeptApart: it is kept, and can be graded where the lab is whole.
        TooBusy: it is kept, and can be graded when this machine has CPU time.
        Interrupted: it is kept, and can be graded later.
    """
    number = store.add_submission(loaded.lab.id, source, secrets.randbits(_SEED_BITS))
    try:
        return grade(store, loaded, number, limits, use_gpu)
    except (KeyboardInterrupt, TooBusy) as problem:
        words = (
            f"Submission {number} is recorded. Grade it with: {_later(loaded, number)}"
        )
        if isinstance(problem, TooBusy):
            raise TooBusy(f"{problem} {words}") from None
        raise Interrupted(number, words) from None


def grade(
    store: Store,
    loaded: LoadedLab,
    number: int,
    limits: Limits | None = None,
    use_gpu: bool = True,
) -> Graded:
    """Grade a submission that is kept, once more or for the first time.

    Raises:
        LookupError: there is none of this lab.
        KeptApart: the lab can't grade here.
    """
    kept = store.submission(number)
    if kept is None or kept.lab != loaded.lab.id:
        raise LookupError(f"There is no submission {number} of {loaded.lab.id}.")
    if loaded.private is None:
        raise KeptApart(
            f"Submission {number} is recorded. It can't be graded here: its hidden "
            f"cases are on another machine. Where {VAULT} names the folder that "
            f"has them: {_later(loaded, number)}"
        )
    result = _graded(Submission(loaded, kept.source, kept.seed, limits, use_gpu))
    store.add_result(number, result)
    passed, place = result.status == "passed", store.number_of(number)
    return Graded(result, passed, "self-graded", number, place)


def regrade(
    store: Store, number: int, limits: Limits | None = None, use_gpu: bool = True
) -> Graded:
    """Grade a submission of the catalogue once more; what it got before stays, too.

    Raises:
        LookupError: there is none.
        NoLab: its lab is in a folder, which nobody named.
        KeptApart: its lab can't grade here.
    """
    kept = store.submission(number)
    if kept is None:
        raise LookupError(f"There is no submission {number}.")
    try:
        loaded = find(kept.lab)
    except NoLab:
        raise NoLab(
            f"Submission {number} is of `{kept.lab}`, which is not in the catalogue. "
            f"Name its folder: warpbook labs regrade FOLDER {number}"
        ) from None
    return grade(store, loaded, number, limits, use_gpu)


def _graded(submission: Submission) -> CheckResult:
    result = grader_of(submission.loaded.lab).grade(submission)
    digest = sha256(submission.source.encode()).hexdigest()
    provenance = Provenance(submission.loaded.digest, digest, __version__)
    return replace(result, provenance=provenance)


def _later(loaded: LoadedLab, number: int) -> str:
    """Give the command that grades a submission once more."""
    if is_installed(loaded.folder):
        return f"warpbook labs regrade {number}"
    return f"warpbook labs regrade {shlex.quote(str(loaded.folder))} {number}"
