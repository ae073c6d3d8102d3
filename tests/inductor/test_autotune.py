"""mode="max-autotune": every candidate is right, the fastest one is kept in the cache folder, and only whole entries are believed."""

from __future__ import annotations

import numpy as np
import pytest

import rushlight as torch
from rushlight.inductor import autotune, costs
from rushlight.nn import functional as F


@pytest.fixture
def timings(monkeypatch, tmp_path):
    """An empty cache folder, and the candidates of each shape that was timed, those of a core with AVX-512; the last one is
    the fastest."""
    monkeypatch.setenv("RUSHLIGHT_CACHE_DIR", str(tmp_path))
    timed = []

    def measure(template, candidates, buffers, threads):
        timed.append([candidate.label for candidate in candidates])
        return {candidate.label: 1.0 / (1 + place) for place, candidate in enumerate(candidates)}

    monkeypatch.setattr(autotune, "measure", measure)
    monkeypatch.setattr(costs, "core", lambda: costs.AVX512)
    return timed


def _product(rows: int = 700):
    torch.manual_seed(0)
    layer, x = torch.nn.Linear(512, 40), torch.randn(rows, 512)
    return layer, x


def _run(model, x) -> np.ndarray:
    with torch.no_grad():
        return torch.compile(model, mode="max-autotune", fullgraph=True)(x).numpy()


def test_a_winner_is_kept_and_found_again(timings, tmp_path):
    layer, x = _product()
    with torch.no_grad():
        want = layer(x).numpy()
    np.testing.assert_allclose(_run(layer, x), want, rtol=1e-4, atol=1e-5)
    assert timings == [["234 rows at once", "all rows at once", "128 rows at once"]]
    (entry,) = tmp_path.glob("*.choice")
    assert entry.read_bytes().startswith(b"128 rows at once")
    assert any("128L)" in source.read_text() for source in tmp_path.glob("*.cpp"))
    np.testing.assert_allclose(_run(layer, x), want, rtol=1e-4, atol=1e-5)
    assert len(timings) == 1
    _run(*_product(rows=601))
    assert len(timings) == 2  # another shape


@pytest.mark.parametrize("content", [b"", b"128 rows at once", b"\xff" * 60, None], ids=["empty", "unsealed", "noise", "another name"])
def test_a_corrupted_entry_is_timed_again(timings, tmp_path, content):
    layer, x = _product()
    _run(layer, x)
    (entry,) = tmp_path.glob("*.choice")
    if content is None:
        autotune.cache.keep(entry, b"no such candidate")
    else:
        entry.write_bytes(content)
    _run(layer, x)
    assert len(timings) == 2
    assert autotune.cache.read(entry) == b"128 rows at once"


def test_without_a_cache_folder_the_choice_is_made_each_time(timings, monkeypatch, tmp_path):
    layer, x = _product()
    monkeypatch.setattr(autotune, "_winner_path", lambda *arguments: None)
    for _ in range(2):
        _run(layer, x)
    assert len(timings) == 2 and not list(tmp_path.glob("*.choice"))


def test_convolutions_have_two_algorithms(timings):
    torch.manual_seed(0)
    model = torch.nn.Sequential(torch.nn.Conv2d(32, 32, 3, padding=1), torch.nn.ReLU(), torch.nn.Conv2d(32, 64, 3, padding=1))
    image = torch.randn(2, 32, 20, 20)
    with torch.no_grad():
        want = model(image).numpy()
    np.testing.assert_allclose(_run(model, image), want, rtol=1e-4, atol=1e-4)
    assert sorted(timings[-1]) == ["direct_convolution", "winograd"]


def test_measuring_runs_every_candidate(monkeypatch, tmp_path):
    monkeypatch.setenv("RUSHLIGHT_CACHE_DIR", str(tmp_path))
    seen = {}
    measure = autotune.measure

    def note(*arguments):
        seen.update(measure(*arguments))
        return seen

    monkeypatch.setattr(autotune, "measure", note)
    monkeypatch.setattr(autotune, "BUDGET", 0.0)
    _run(*_product())
    assert len(seen) == 3 and all(0 < seconds < 60 for seconds in seen.values())


def test_other_modes_time_nothing(timings):
    layer, x = _product()
    with torch.no_grad():
        np.testing.assert_allclose(torch.compile(layer)(x).numpy(), F.linear(x, layer.weight, layer.bias).numpy(), atol=1e-4)
    assert timings == []
