"""CUPTI and CUDA's driver in C, as far as stalls are sampled; see `stubcupti.c`."""

import subprocess
from pathlib import Path

SOURCE = Path(__file__).with_name("stubcupti.c")


def build(directory: Path) -> Path:
    """Compile both into a directory, which is also a CUDA toolkit's."""
    (directory / "lib64").mkdir()
    for name in ("libcuda.so.1", "lib64/libcupti.so.13"):
        warnings = ("-Wall", "-Wextra", "-Werror")
        command = ["cc", "-O1", *warnings, "-shared", "-fPIC", "-o", directory / name]
        subprocess.run([*command, SOURCE], check=True)
    return directory
