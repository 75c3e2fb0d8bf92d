"""Headers of an installed toolkit serve an NVRTC that has none within itself."""

from __future__ import annotations

from pathlib import Path

import pytest

from tests.lab_checks import check
from warpbook_labs.compiler import cuda_headers, nvrtc
from warpbook_labs.course.session import find

#: grouped.h is a toolkit's alone; the rest lies where CUDA 13 has it
FILES = {
    "cuda_runtime_api.h": "#define CUDART_VERSION  {version}\n",
    "cuda_runtime.h": "#error of the host\n",
    "cublas_v2.h": "#error of the host\n",
    "cooperative_groups.h": '#include "cooperative_groups/details/helpers.h"\n',
    "cooperative_groups/details/helpers.h": '#include "info.h"\n',
    "cooperative_groups/details/info.h": "#include <cuda/atomic>\n",
    "cccl/cuda/atomic": "#include <nv/target>\n",
    "cccl/nv/target": "__device__ int of_{version}() {{ return {version}; }}\n",
}
KERNEL = """
#include <cuda_runtime.h>
#include <cooperative_groups.h>
extern "C" __global__ void kernel(int* out) { *out = of_%d(); }
"""


@pytest.fixture
def older_nvrtc(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> Path:
    """Have an NVRTC 13.0 without headers, and a toolkit that lies at `CUDA_HOME`."""
    monkeypatch.setattr(cuda_headers, "_unpack", lambda folder: False)
    monkeypatch.setattr(nvrtc, "version_numbers", lambda: (13, 0))
    monkeypatch.setattr(
        cuda_headers, "_places", lambda major: [(tmp_path / "include",)]
    )
    cuda_headers._known.cache_clear()
    yield tmp_path
    cuda_headers._known.cache_clear()


def toolkit(folder: Path, version: int) -> Path:
    for name, text in FILES.items():
        path = folder / "include" / name
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text(text.format(version=version))
    return folder / "include"


def test_a_source_includes_headers_of_the_toolkit(older_nvrtc: Path) -> None:
    toolkit(older_nvrtc, 13000)
    source = KERNEL % 13000
    headers = cuda_headers.headers_for(source)
    assert "cublas_v2.h" not in headers
    assert ".entry kernel" in nvrtc.compile_to_ptx(source, headers=headers).ptx


def test_a_source_reaches_no_file_by_its_path(older_nvrtc: Path) -> None:
    toolkit(older_nvrtc, 13000)
    secret = older_nvrtc / "secret.h"
    secret.write_text("int secret;\n")
    for path in (secret, "../secret.h", "cuda/../../secret.h", "nv/../cublas_v2.h"):
        assert cuda_headers.headers_for(f'#include "{path}"') == {}


def test_its_very_version_comes_first_and_another_major_one_is_left_out(
    tmp_path: Path,
) -> None:
    places = [
        (toolkit(tmp_path / str(version), version),)
        for version in (12090, 13020, 13000)
    ]
    (places[1][0] / "mma.h").write_text("")
    (places[0][0] / "cuda_fp4.h").write_text("")
    headers = cuda_headers.toolkit_headers((13, 0), places)
    assert headers["nv/target"] == places[2][0] / "cccl/nv/target"
    assert headers["mma.h"] == places[1][0] / "mma.h"
    assert "cuda_fp4.h" not in headers
    # of wheels for CUDA 12, one says the version of all
    wheels = (tmp_path / "empty", *places[0])
    assert "cuda_fp4.h" in cuda_headers.toolkit_headers((12, 9), [wheels])


def test_without_any_it_is_not_supported_and_told_what_to_install(
    older_nvrtc: Path,
) -> None:
    lab = find("vector-add")
    for name, status, words in (
        ("cuda/atomic", "unsupported", "pip install 'nvidia-cuda-cccl==13.0.*'"),
        ("helpers_of_mine.h", "compile error", "Only the headers for device code"),
    ):
        source = f"{lab.reference}\n#include <{name}>\n"
        result = check(lab, source)
        assert result.status == status
        assert words in result.message
