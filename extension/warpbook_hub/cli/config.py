"""`warpbook hub config`: files for a JupyterHub that is there already."""

from __future__ import annotations

import argparse
import pwd
import re
import sys
from collections.abc import Callable
from pathlib import Path
from typing import TYPE_CHECKING

from warpbook.cli.output import CommandError
from warpbook_monitors.plain_text import printable

if TYPE_CHECKING:
    from warpbook_hub.spawners.site_files import Site

_USERNAME = r"[a-z0-9][a-z0-9._@+-]{0,63}"
_TYPE = r"[A-Za-z0-9][A-Za-z0-9._-]{0,63}"
_UUID = r"(GPU|MIG)-[0-9a-f]{8}(-[0-9a-f]{4}){3}-[0-9a-f]{12}"
_HOST = r"[a-z0-9]([a-z0-9.-]*[a-z0-9])?"
_LABEL = r"[a-z0-9]([a-z0-9-]{0,61}[a-z0-9])?"
#: what no file of text holds
_NO_TEXT = r"\x00-\x1f\x7f-\x9f\u2028\u2029\ud800-\udfff\ufffe\uffff"
#: of each option: what it must be, and an example
_FORMS = {
    "hub_url": (rf"https?://{_HOST}(:\d+)?(/[A-Za-z0-9._~-]+)*/", "https://h.example/"),
    "course": (r"[a-z0-9][a-z0-9._-]{0,63}", "gpu"),
    "title": (rf"(?!-)[^{_NO_TEXT}]{{1,200}}", "GPU programming"),
    "instructor": (_USERNAME, "grace"),
    "operator": (_USERNAME, "grace"),
    "image": (r"[A-Za-z0-9][A-Za-z0-9._/:@-]{0,254}", "registry.example.org/gpu:1"),
    "namespace": (_LABEL, "jhub"),
    "partition": (r"[A-Za-z0-9][A-Za-z0-9_.,-]{0,99}", "gpu"),
    "time_limit": (r"(\d{1,3}-)?\d{1,2}:\d{2}:\d{2}", "4:00:00"),
    "folder": (r"/[A-Za-z0-9._/-]+", "/var/lib/warpbook/course"),
    "service_user": (r"[a-z_][a-z0-9_-]{0,31}", "warpbook-hub"),
}
#: options of one spawner, or of those that start the service by the hub
_NEEDED = {"kube": ("image", "namespace"), "slurm": ("partition", "time_limit")}
_BY_HUB = ("folder", "service_user")


def add_command(commands: argparse._SubParsersAction[argparse.ArgumentParser]) -> None:
    parser = commands.add_parser(
        "config",
        help="write what a JupyterHub that is there already needs for a course",
        description="Write the configuration of a JupyterHub that is there already: "
        "the course as its service, and servers with a GPU, a MIG slice or none by "
        "KubeSpawner, SystemdSpawner or BatchSpawner. It starts nothing.",
    )
    add = parser.add_argument
    add("--spawner", choices=("kube", "systemd", "slurm"), required=True)
    add("--hub-url", required=True, metavar="URL", help="where people reach the hub")
    add(
        "--instructor",
        action="append",
        required=True,
        metavar="NAME",
        help="a user name that runs the course; more than once for more",
    )
    add(
        "--operator",
        action="append",
        default=[],
        metavar="NAME",
        help="a user name that runs graders, the whole queue and backups; more than "
        "once for more (default: nobody)",
    )
    add("--course", default="gpu", metavar="ID", help="of the course (default: gpu)")
    add("--title", default="GPU programming", help="of the course, when it is begun")
    add(
        "--gpu",
        action="append",
        required=True,
        metavar="GPU",
        help="what a server may have: `whole` or a MIG profile such as 1g.10gb; with "
        "systemd a UUID and its device nodes, such as GPU-...=/dev/nvidia0; more than "
        "once for more",
    )
    add("--cpus", type=int, default=2, metavar="N", help="of each server (default: 2)")
    add(
        "--memory-gib",
        type=int,
        default=8,
        metavar="N",
        help="of each server (default: 8)",
    )
    add("--image", metavar="IMAGE", help="with warpbook and jupyterhub; kube")
    add("--namespace", metavar="NAME", help="of the hub; kube")
    add("--partition", metavar="NAME", help="of the jobs; slurm")
    add("--time-limit", metavar="H:MM:SS", help="of a server; slurm")
    add(
        "--folder",
        metavar="DIR",
        help="of the course's database (default: /var/lib/warpbook/course); systemd, "
        "slurm",
    )
    add(
        "--service-user",
        metavar="NAME",
        help="the account of the course service, if the hub runs as root; systemd, "
        "slurm",
    )
    add(
        "--output",
        type=Path,
        default=Path(),
        metavar="DIR",
        help="where the files are written (default: here)",
    )
    parser.set_defaults(run=run)


def run(options: argparse.Namespace) -> int:
    """Write the files, all of them or none."""
    site = _site(options)
    from warpbook_hub.spawners.site_files import site_files

    texts = site_files(site)
    files = {options.output / name: text for name, text in texts.items()}
    for file in files:
        if file.exists() or file.is_symlink():
            raise CommandError(
                f"{file} is there already, and is left as it is. Name another folder "
                "with --output, or move the file away."
            )
    begun: list[Path] = []
    try:
        options.output.mkdir(parents=True, exist_ok=True)
        for file, text in files.items():
            with file.open("x", encoding="utf-8") as output:
                begun.append(file)
                output.write(text)
    except OSError as problem:
        for file in begun:
            file.unlink()
        where = problem.filename or options.output
        raise CommandError(f"{where}: {problem.strerror}.") from None
    for file in begun:
        print(printable(f"wrote {file}"))
    if not site.operators:
        print("Nobody can add graders yet: no --operator was named.")
    return 0


def _site(options: argparse.Namespace) -> Site:
    """Check what the site has decided.

    Raises:
        CommandError: an option is missing, malformed, or of another spawner.
    """
    spawner = options.spawner
    if spawner != "kube" and options.folder is None:
        options.folder = "/var/lib/warpbook/course"
    if not options.hub_url.endswith("/"):
        options.hub_url += "/"
    _check_whose(options)
    for name, (form, example) in _FORMS.items():
        given = getattr(options, name)
        for text in given if isinstance(given, list) else [given]:
            if text is not None and re.fullmatch(form, text) is None:
                raise CommandError(f"{_option(name)} is such as {example}.")
    if not 1 <= options.cpus <= 1024 or not 1 <= options.memory_gib <= 65536:
        raise CommandError("--cpus is 1 to 1024, and --memory-gib 1 to 65536.")
    if options.service_user is not None:
        _check_account(options.service_user)
    python_folder = str(Path(sys.executable).parent)
    if spawner == "slurm" and not re.fullmatch(r"[A-Za-z0-9/._+-]+", python_folder):
        raise CommandError(
            f"{python_folder}: jobs run this Python, and its folder has characters "
            "that a script would not take as they are. Install it elsewhere."
        )
    from warpbook_hub.spawners import site_files as files

    readers = {"kube": _profile_of(files.MIG), "slurm": _type_of, "systemd": _nodes_of}
    site: Site = files.Site(
        spawner,
        options.hub_url,
        options.course,
        options.title,
        tuple(dict.fromkeys(options.instructor)),
        tuple(dict.fromkeys(options.operator)),
        options.cpus,
        options.memory_gib,
        _gpus(options.gpu, readers[spawner]),
        folder=options.folder or "",
        service_user=options.service_user or "",
        image=options.image or "",
        namespace=options.namespace or "",
        partition=options.partition or "",
        time_limit=options.time_limit or "",
    )
    return site


def _check_whose(options: argparse.Namespace) -> None:
    """Refuse options of another spawner, and ask for those of this one."""
    for spawner, names in _NEEDED.items():
        for name in names:
            is_given = getattr(options, name) is not None
            if is_given and options.spawner != spawner:
                raise CommandError(f"{_option(name)} is of --spawner {spawner}.")
            if not is_given and options.spawner == spawner:
                _, example = _FORMS[name]
                raise CommandError(
                    f"--spawner {spawner} needs {_option(name)}, such as {example}."
                )
    for name in _BY_HUB:
        if options.spawner == "kube" and getattr(options, name) is not None:
            raise CommandError(
                f"{_option(name)}: with --spawner kube the service is a pod."
            )


def _check_account(name: str) -> None:
    try:
        pwd.getpwnam(name)
    except KeyError:
        raise CommandError(
            f"There is no account {name}. Make it once: useradd --system --create-home "
            f"--shell /usr/sbin/nologin {name}"
        ) from None


def _gpus(
    given: list[str], read: Callable[[str], tuple[str, tuple[str, ...]]]
) -> dict[str, tuple[str, ...]]:
    gpus = dict(map(read, given))
    if len(gpus) < len(given):
        raise CommandError("--gpu: one of them is given twice.")
    for uuid, nodes in gpus.items():
        others = {
            node for other, theirs in gpus.items() if other != uuid for node in theirs
        }
        # MIG instances share the node of their GPU, and nothing else
        own = set(nodes) if uuid.startswith("GPU-") else set(nodes[1:])
        if own & others:
            raise CommandError(
                f"--gpu: {min(own & others)} is of another one, too: two servers would "
                "use the same GPU."
            )
    return gpus


def _profile_of(mig: str) -> Callable[[str], tuple[str, tuple[str, ...]]]:
    def read(text: str) -> tuple[str, tuple[str, ...]]:
        if text != "whole" and re.fullmatch(mig, text) is None:
            raise CommandError("--gpu is `whole` or a MIG profile such as 1g.10gb.")
        return text, ()

    return read


def _type_of(text: str) -> tuple[str, tuple[str, ...]]:
    if re.fullmatch(_TYPE, text) is None:
        raise CommandError("--gpu is `whole`, or a type of gres.conf, such as 1g.10gb.")
    return text, ()


def _nodes_of(text: str) -> tuple[str, tuple[str, ...]]:
    uuid, _, nodes = text.partition("=")
    paths = tuple(nodes.split(","))
    is_node = all(re.fullmatch(r"/dev/[A-Za-z0-9/-]+", path) for path in paths)
    if re.fullmatch(_UUID, uuid) is None or not is_node:
        raise CommandError(
            "--gpu with systemd is a UUID of `nvidia-smi -L` and its device nodes, "
            "such as GPU-01234567-89ab-cdef-0123-456789abcdef=/dev/nvidia0. Of a MIG "
            "instance add its two below /dev/nvidia-caps, with commas."
        )
    return uuid, paths


def _option(name: str) -> str:
    return f"--{name.replace('_', '-')}"
