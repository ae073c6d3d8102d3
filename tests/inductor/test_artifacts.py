"""Artifacts: built programs moved as one file, and what is refused."""

from __future__ import annotations

import json
import os
import random
import subprocess
import sys
import warnings
from pathlib import Path

import pytest

import rushlight as torch
from rushlight.inductor import artifacts, build
from rushlight.utils.native import cache
from tests.inductor.test_build import PROGRAM, SOURCE, entries


@pytest.fixture
def folder(tmp_path, monkeypatch):
    chosen = tmp_path / "cache"
    monkeypatch.setenv("RUSHLIGHT_CACHE_DIR", str(chosen))
    monkeypatch.setattr(build, "_used", {})
    return chosen


@pytest.fixture
def saved(folder) -> bytes:
    """Two programs, one of which was loaded from the cache."""
    for number in (1, 2, 1):
        build.build(SOURCE % number)
    data, info = torch.compiler.save_cache_artifacts()
    assert len(info.inductor_artifacts) == 2 and not info.empty()
    return data


def loads(data: bytes) -> tuple:
    """What load_cache_artifacts returns, and its one warning."""
    with warnings.catch_warnings(record=True) as caught:
        warnings.simplefilter("always")
        info = torch.compiler.load_cache_artifacts(data)
    return info, " ".join(str(warning.message) for warning in caught)


def forged(data: bytes, change) -> bytes:
    """The artifacts with their header changed by `change`, and a hash that fits."""
    header, start = artifacts._read_header(data)
    body = data[start : -artifacts._HASH_BYTES]
    change(header)
    encoded = json.dumps(header).encode()
    whole = artifacts._MAGIC + artifacts._LENGTH.pack(len(encoded)) + encoded + body
    return whole + bytes.fromhex(artifacts._hash(whole))


def test_nothing_to_save(folder):
    assert torch.compiler.save_cache_artifacts() is None


def test_another_folder_and_another_compiler_use_what_was_saved(saved, tmp_path, monkeypatch):
    monkeypatch.setenv("RUSHLIGHT_CACHE_DIR", str(tmp_path / "other"))
    monkeypatch.setenv("CXX", "/nonexistent/c++")
    info, warning = loads(saved)
    assert not warning and len(info.inductor_artifacts) == 2
    for number in (1, 2):
        library = build.build(SOURCE % number)
        assert library.from_cache and library.arena_bytes == number
    with pytest.raises(build.CompilerMissing):
        build.build(SOURCE % 3)
    assert torch.compiler.save_cache_artifacts()[0] == saved  # and can be passed on


def test_a_process_that_has_no_compiler(tmp_path):
    """One process compiles and saves, another, with an empty cache and no compiler, loads and runs without a warning."""
    file = tmp_path / "artifacts"
    save = f"import pathlib; pathlib.Path({str(file)!r}).write_bytes(torch.compiler.save_cache_artifacts()[0])"
    load = f"import pathlib, rushlight.compiler as c; c.load_cache_artifacts(pathlib.Path({str(file)!r}).read_bytes())"
    run(PROGRAM + save, tmp_path / "first")
    run(load + PROGRAM, tmp_path / "second", CXX="/nonexistent/c++")
    assert len(entries(tmp_path / "second")) == 1


def run(program: str, folder: Path, **variables: str) -> None:
    environment = {**os.environ, "RUSHLIGHT_CACHE_DIR": str(folder), **variables}
    done = subprocess.run([sys.executable, "-W", "error", "-c", program], env=environment, capture_output=True, text=True)
    assert done.returncode == 0, done.stderr


@pytest.mark.parametrize("change, message", [
    (lambda header: header["instructions"].append("avx2048"), "instructions that this processor lacks: avx2048"),
    (lambda header: header.update(machine="Plan9 vax"), "made for 'Plan9 vax'"),
    (lambda header: header.update(headers="0" * 40), "another version of Rushlight"),
    (lambda header: header.update(instructions=None), "does not say which instructions"),
    (lambda header: header.update(entries=None), "no sound list"),
    (lambda header: header["entries"][0].update(key="../../evil"), "an entry that cannot be"),
    (lambda header: header["entries"][0].update(key="A" * 40), "an entry that cannot be"),
    (lambda header: header["entries"][0].update(library=-1), "an entry that cannot be"),
    (lambda header: header["entries"][0].update(library=True), "an entry that cannot be"),
    (lambda header: header["entries"][0].update(library=2**70), "longer than the bytes"),
    (lambda header: header["entries"][1].update(library=10), "does not fit its content"),
    (lambda header: header["entries"][0].update(hash="0" * 64), "does not fit its content"),
    (lambda header: header["entries"].append(7), "an entry that cannot be"),
])  # fmt: skip
def test_forged_headers_are_refused(saved, tmp_path, monkeypatch, change, message):
    monkeypatch.setenv("RUSHLIGHT_CACHE_DIR", str(tmp_path / "other"))
    info, warning = loads(forged(saved, change))
    assert info is None and message in warning
    assert not list(tmp_path.rglob("evil*")) and not entries(tmp_path / "other")


def test_damaged_bytes_are_refused(saved, tmp_path, monkeypatch):
    monkeypatch.setenv("RUSHLIGHT_CACHE_DIR", str(tmp_path / "other"))
    chosen = random.Random(0)
    for _ in range(200):
        place = chosen.randrange(len(saved))
        flipped = saved[:place] + bytes([saved[place] ^ 1 << chosen.randrange(8)]) + saved[place + 1 :]
        for damaged in (flipped, saved[:place], saved + b"x"):
            info, warning = loads(damaged)
            assert info is None and "nothing was loaded" in warning
    assert not entries(tmp_path / "other")


@pytest.mark.parametrize("encoded", [b"[" * 100_000, b"7", b"{", b"\xff\xfe"])
def test_headers_that_are_no_table(folder, encoded):
    whole = artifacts._MAGIC + artifacts._LENGTH.pack(len(encoded)) + encoded
    info, warning = loads(whole + bytes.fromhex(artifacts._hash(whole)))
    assert info is None and "header" in warning


def test_a_header_longer_than_the_bytes(folder):
    whole = artifacts._MAGIC + artifacts._LENGTH.pack(2**63) + b"{}"
    assert "longer than they are" in loads(whole + bytes.fromhex(artifacts._hash(whole)))[1]


def test_only_bytes_are_taken(folder):
    with pytest.raises(TypeError, match="expects bytes, got str"):
        torch.compiler.load_cache_artifacts("artifacts")


def test_more_than_the_cache_may_hold_is_refused(saved, monkeypatch):
    monkeypatch.setenv("RUSHLIGHT_CACHE_LIMIT", "100")
    info, warning = loads(saved)
    assert info is None and "larger than the cache may be" in warning


def test_entries_that_left_the_cache_are_left_out(saved, folder):
    entries(folder)[0].unlink()
    _, info = torch.compiler.save_cache_artifacts()
    assert len(info.inductor_artifacts) == 1
    assert all(cache.is_intact(path) for path in entries(folder))
