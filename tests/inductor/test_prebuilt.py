"""Kernels that were compiled with Rushlight: which archive generated code is linked with, and that it may be missing."""

from __future__ import annotations

import subprocess
from pathlib import Path

import pytest

import rushlight as torch
import rushlight.nn.functional as F
from rushlight.inductor import build, prebuilt
from rushlight.inductor.processor import instructions
from rushlight.utils.native import toolchain

AVX2 = {"avx2", "fma", "f16c", "bmi1", "bmi2"}
AVX512 = {*AVX2, "avx512f", "avx512bw", "avx512vl", "avx512dq"}

has_archive = pytest.mark.skipif(not AVX2 <= set(instructions()), reason="archives are for x86 with AVX2")


@pytest.fixture
def folder(tmp_path, monkeypatch):
    monkeypatch.setenv("RUSHLIGHT_CACHE_DIR", str(tmp_path / "cache"))
    return tmp_path / "cache"


def products(x, y):
    batches = torch.bmm(x.view(2, 24, 40), y.view(2, 40, 24))
    return F.gelu(x @ y), batches.softmax(-1), (x.bfloat16() @ y.bfloat16()).float(), x.T @ y.T


def attention(x, y):
    q, k = x.view(1, 3, 16, 40), y.view(1, 3, 16, 40)
    narrow = F.scaled_dot_product_attention(q[..., :32], k[..., :32], k[..., :32], is_causal=True)
    return narrow, F.scaled_dot_product_attention(q, k, k, attn_mask=x[:16, :16])


def images(x, y):
    image = x.reshape(1, 16, 12, 10).contiguous(memory_format=torch.channels_last)
    weight = y.reshape(-1)[: 16 * 16 * 3].reshape(16, 16, 3, 1)
    wide = y.reshape(-1)[: 4 * 16 * 9].reshape(4, 16, 3, 3)
    each, grouped = y.reshape(-1)[: 16 * 9].reshape(16, 1, 3, 3), y.reshape(-1)[: 16 * 4 * 9].reshape(16, 4, 3, 3)
    plain = F.conv2d(x.reshape(1, 16, 12, 10), each, groups=16)
    return (F.conv2d(image, weight), F.conv2d(image, wide, padding=1), F.conv2d(image, each, groups=16),
            F.conv2d(image, grouped, groups=4), plain)  # fmt: skip


def gradients(x, y):
    leaf = x.reshape(1, 16, 12, 10).detach().contiguous(memory_format=torch.channels_last).requires_grad_()
    weight = y.reshape(-1)[: 8 * 16 * 9].reshape(8, 16, 3, 3).detach().requires_grad_()
    return torch.autograd.grad(F.conv2d(leaf, weight, padding=1).square().sum(), [leaf, weight])


@has_archive
def test_the_build_made_an_archive_for_this_processor():
    archive = prebuilt.archive(instructions(), build.headers_digest())
    assert archive is not None and archive.stat().st_size > 0


@pytest.mark.parametrize("function", [products, attention, images, gradients])
def test_results_with_and_without_an_archive(function, folder, monkeypatch):
    torch.manual_seed(0)
    x, y = torch.randn(48, 40), torch.randn(40, 48)
    wanted = function(x, y)
    for archive in (build._archive(toolchain.compiler()), None):
        monkeypatch.setattr(build, "_archive", lambda compiler, archive=archive: archive)
        monkeypatch.setenv("RUSHLIGHT_CACHE_DIR", str(folder / str(archive is None)))
        torch.compiler.reset()
        found = torch.compile(function)(x, y)
        for one, other in zip(found, wanted, strict=True):
            torch.testing.assert_close(one, other, rtol=2e-2 if function is products else 1e-4, atol=1e-3)
        libraries = list((folder / str(archive is None)).glob("*.so"))
        assert libraries and not any(map(variables_of_the_process, libraries))


def variables_of_the_process(library: Path) -> list[str]:
    """Symbols of which a process has one for all its libraries, though other headers may have made them for other processors."""
    listed = subprocess.run(["readelf", "--dyn-syms", "--wide", str(library)], check=True, capture_output=True, text=True)
    return [line for line in listed.stdout.splitlines() if " UNIQUE " in line]


@has_archive
@pytest.mark.parametrize("content", [b"", b"!<arch>\n", b"rubbish"])
def test_a_damaged_archive_is_done_without(content, folder, tmp_path, monkeypatch):
    damaged = tmp_path / "damaged.a"
    damaged.write_bytes(content)
    monkeypatch.setattr(build, "_archive", lambda compiler: damaged)
    torch.compiler.reset()
    x, y = torch.randn(48, 40), torch.randn(40, 48)
    torch.testing.assert_close(torch.compile(lambda x, y: (x @ y).relu())(x, y), (x @ y).relu())
    assert list(folder.glob("*.so"))


@pytest.mark.parametrize("features, wanted", [
    (AVX2, "avx2"), ({*AVX2, "avx_vnni"}, "avx2"), (AVX512, "avx512"), (AVX512 - {"avx512bw"}, None), (AVX2 - {"fma"}, None),
    (set(), None),
])  # fmt: skip
def test_archives_are_for_all_that_the_processor_can(features, wanted, tmp_path, monkeypatch):
    monkeypatch.setattr(prebuilt, "__file__", str(tmp_path / "prebuilt.py"))
    made = tmp_path / prebuilt.FOLDER
    made.mkdir()
    for name in prebuilt.INSTRUCTIONS:
        (made / prebuilt.archive_name(name, "digest")).touch()
    assert prebuilt.archive(features, "digest") == (wanted and made / f"{wanted}-digest.a")
    assert prebuilt.archive(features, "other headers") is None


def test_every_edit_of_a_header_gives_another_digest(tmp_path):
    headers = tmp_path / "rushlight"
    headers.mkdir()
    found = set()
    for text in ("int one;", "int two;"):
        (headers / "one.h").write_text(text)
        found.add(prebuilt.digest_of_headers(tmp_path))
    assert len(found) == 2
    assert prebuilt.digest_of_headers(Path(build.INCLUDE)) == build.headers_digest()
