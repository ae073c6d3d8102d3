"""mode="max-autotune" on a GPU: candidates are timed once for each shape, and the fastest one is kept in the cache folder."""

from __future__ import annotations

import pytest

import rushlight as torch
from rushlight.compiler.logs import leave, listen
from rushlight.cuda import driver
from rushlight.inductor.triton import tuning

F = torch.nn.functional


@pytest.fixture
def timed(monkeypatch, tmp_path):
    """An empty cache folder, and the candidates of each launch that was timed. The last one is the fastest."""
    monkeypatch.setenv("RUSHLIGHT_CACHE_DIR", str(tmp_path))
    found = []

    def measure(trial, candidates):
        found.append([tuning.label_of(choice) for choice in candidates])
        return {label: 1.0 / (1 + place) for place, label in enumerate(found[-1])}

    monkeypatch.setattr(tuning, "measure", measure)
    return found


class Launches:
    """A listener that collects the launches of all programs."""

    def __init__(self):
        self.found = []

    def heard(self, log, record):
        if record.stage == "code":
            self.found += [launch for _, program in record.subject.programs for launch in program.launches]

    def interpreting(self, log):
        return None


def run(function, *inputs, mode="max-autotune-no-cudagraphs"):
    """The result of a compiled function on the device, and its launches."""
    torch.compiler.reset()
    launches = Launches()
    listen(launches)
    try:
        result = torch.compile(function, mode=mode)(*(each.cuda() for each in inputs))
    finally:
        leave(launches)
    return result.cpu(), launches.found


def layer(x, w):
    return F.relu(x @ w)


def test_the_fastest_candidate_runs_and_is_kept(timed, tmp_path):
    x, w = torch.randn(40, 24), torch.randn(24, 70)
    result, (launch,) = run(layer, x, w)
    torch.testing.assert_close(result, layer(x, w), rtol=1e-4, atol=1e-4)
    assert [tuning.label_of(choice) for choice in launch.candidates] == timed[0]
    assert tuning.label_of(launch.choice) == timed[0][-1]
    (entry,) = tmp_path.glob("*.choice")
    assert entry.read_bytes().startswith(timed[0][-1].encode())
    result, (launch,) = run(layer, x, w)
    torch.testing.assert_close(result, layer(x, w), rtol=1e-4, atol=1e-4)
    assert len(timed) == 1 and tuning.label_of(launch.choice) == timed[0][-1]
    run(layer, x[:30], w)
    assert len(timed) == 2


def test_nothing_is_timed_by_default(timed):
    run(layer, torch.randn(4, 4), torch.randn(4, 4), mode=None)
    assert timed == []


def test_attention_convolutions_and_reductions_are_timed(timed):
    heads = [torch.randn(1, 2, 40, 16) for _ in range(3)]
    run(lambda q, k, v: F.scaled_dot_product_attention(q, k, v), *heads)
    run(lambda x, w: F.conv2d(x, w), torch.randn(1, 4, 6, 6), torch.randn(5, 4, 3, 3))
    run(lambda x: torch.softmax(x, -1), torch.randn(40, 30))
    assert [label.split("=")[0] for labels in timed for label in labels[:1]] == ["QUERIES", "ROWS", "XBLOCK"]


def test_candidates_that_do_not_fit_are_dropped(timed, monkeypatch):
    def compiled(trial, capability):
        return [{"shared": 1 << 30}, {"error": "too many registers"}, *[{"shared": 0}] * (len(trial.launch.candidates) - 2)]

    monkeypatch.setattr(tuning.Trial, "_compile", compiled)
    monkeypatch.setattr(tuning, "is_interpreting", lambda: False)
    _, (launch,) = run(layer, torch.randn(40, 24), torch.randn(24, 70))
    assert timed == [[tuning.label_of(choice) for choice in launch.candidates[2:]]]


def test_a_compiler_that_fails_leaves_the_default(timed, monkeypatch):
    def fail(work, capabilities):
        raise RuntimeError("Triton's compiler failed")

    monkeypatch.setattr(tuning, "is_interpreting", lambda: False)
    monkeypatch.setattr(tuning.compiler, "compile_apart", fail, raising=False)
    x, w = torch.randn(40, 24), torch.randn(24, 70)
    result, (launch,) = run(layer, x, w)
    torch.testing.assert_close(result, layer(x, w), rtol=1e-4, atol=1e-4)
    assert timed == [[]] and launch.choice in launch.candidates


def test_times_are_measured_by_events(standin, monkeypatch, tmp_path):
    monkeypatch.setenv("RUSHLIGHT_CACHE_DIR", str(tmp_path))
    monkeypatch.setattr(tuning, "ROUNDS", 2)
    monkeypatch.setattr(tuning, "BUDGET", 1e6)
    x, w = torch.randn(20, 16), torch.randn(16, 20)
    result, (launch,) = run(layer, x, w)
    torch.testing.assert_close(result, layer(x, w), rtol=1e-4, atol=1e-4)
    timed = [each for each in standin.log if each[0] == "launch"]
    assert len(timed) == 3 * len(launch.candidates) + 1
    assert len(list(tmp_path.glob("*.choice"))) == 1


def test_without_memory_the_default_runs(standin, monkeypatch, tmp_path):
    monkeypatch.setenv("RUSHLIGHT_CACHE_DIR", str(tmp_path))

    def refuse(trial):
        raise driver.DriverOutOfMemory("cuMemAlloc_v2", "CUDA_ERROR_OUT_OF_MEMORY")

    monkeypatch.setattr(tuning.Trial, "memory", refuse)
    x, w = torch.randn(20, 16), torch.randn(16, 20)
    result, (launch,) = run(layer, x, w)
    torch.testing.assert_close(result, layer(x, w), rtol=1e-4, atol=1e-4)
    assert launch.choice in launch.candidates
    assert not list(tmp_path.glob("*.choice"))
