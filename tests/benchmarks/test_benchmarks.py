"""The benchmark suite: the spellings of a workload agree, figures are gathered and shown, failures are reported."""

from __future__ import annotations

import importlib
import subprocess
import sys
from pathlib import Path

import numpy as np
import pytest

from benchmarks.contenders import CONTENDERS
from benchmarks.encoder import EncoderWorkload
from benchmarks.report import details, duration, summary
from benchmarks.rounds import Outcome
from benchmarks.runner import Measurement
from benchmarks.timing import FEWEST_SAMPLES, sample
from benchmarks.training import PerceptronTraining, TransformerTraining
from benchmarks.workload import choose
from benchmarks.workloads import WORKLOADS

ROOT = Path(__file__).parents[2]
TINY = EncoderWorkload("tiny", "tiny encoder", layers=2, hidden=24, tokens=5)


def contender(name: str):
    return choose(CONTENDERS, [name], "contender")[0]


def measurement(median: float, others: float = 0.0, first: float = 1.0, difference: float = 0.0) -> Measurement:
    return Measurement(
        first=first, median=median, best=median, difference=difference, cosine=1.0, memory=10**6, others=others
    )


# PyTorch's contenders are left out: they need a process in which the model's source gets PyTorch for Rushlight.
@pytest.mark.parametrize("name", ["rushlight", "rushlight-compile", "onnxruntime", "openvino", "jax"])
def test_every_contender_agrees_with_the_reference_encoder(name, tmp_path, monkeypatch):
    chosen = contender(name)
    if chosen.missing():
        pytest.skip(f"not installed: {chosen.missing()}")
    monkeypatch.setenv("RUSHLIGHT_CACHE_DIR", str(tmp_path))
    inputs, weights = TINY.inputs(), TINY.weights()
    chosen.load(TINY, inputs, weights, threads=1, cache=tmp_path)
    with chosen.mode():
        result = chosen.to_numpy(chosen.start()())
    np.testing.assert_allclose(result, TINY.reference(inputs, weights), atol=TINY.tolerance)


class TinyTransformer(TransformerTraining):
    words, hidden, heads, batch, tokens = 11, 8, 2, 2, 5


@pytest.mark.parametrize("workload", [
    PerceptronTraining("tiny", "", (6, 5, 4), 3), TinyTransformer("tiny", "", 1),
], ids=["perceptron", "transformer"])  # fmt: skip
@pytest.mark.parametrize("name", ["rushlight", "rushlight-compile", "jax"])
def test_every_contender_finds_the_loss_and_the_gradients_of_a_step(name, workload, tmp_path, monkeypatch):
    chosen = contender(name)
    if chosen.missing():
        pytest.skip(f"not installed: {chosen.missing()}")
    monkeypatch.setenv("RUSHLIGHT_CACHE_DIR", str(tmp_path))
    inputs, weights = workload.inputs(), workload.weights()
    chosen.load(workload, inputs, weights, threads=1, cache=tmp_path)
    with chosen.mode():
        step = chosen.start()
        results = [workload.collect(chosen.to_numpy(step())) for _ in range(3)]
    for result in results:
        np.testing.assert_allclose(result, workload.reference(inputs, weights), atol=workload.tolerance)


def test_command_line_measures_and_writes(tmp_path):
    command = [sys.executable, "-m", "benchmarks", "--only", "add", "--contenders", "rushlight", "--rounds", "1"]
    finished = subprocess.run(
        [*command, "--budget", "0.01", "--patience", "0", "--output", str(tmp_path)],
        cwd=ROOT,
        capture_output=True,
        text=True,
    )
    assert finished.returncode == 0, finished.stderr
    page = (tmp_path / "results.md").read_text()
    assert "a + b, 8 elements" in page and "DISAGREES" not in page
    assert "failed" not in page


def test_unknown_names_are_named():
    with pytest.raises(ValueError, match="unknown workload: nope; there are: minilm"):
        choose(WORKLOADS, ["nope"], "workload")
    assert [item.name for item in choose(WORKLOADS, ["resnet18", "minilm"], "workload")] == ["resnet18", "minilm"]


def test_disturbed_rounds_do_not_count():
    rounds = [measurement(9.0, others=1.0), measurement(2.0), measurement(4.0)]
    outcome = Outcome(contender("torch"), TINY, rounds)
    assert outcome.median == 3.0 and not outcome.disturbed
    assert Outcome(contender("torch"), TINY, rounds[:1]).median == 9.0
    assert Outcome(contender("torch"), TINY, rounds[:1]).disturbed


def test_report_shows_ratios_first_calls_problems_and_disagreement():
    base = Outcome(contender("torch"), TINY, [measurement(2e-3)])
    rounds = [measurement(1e-3, first=3.0), measurement(1e-3, first=0.5, difference=1.0)]
    compiled = Outcome(contender("rushlight-compile"), TINY, rounds)
    absent = Outcome(contender("jax"), TINY, problem="not installed: jax")
    page = "\n".join(summary([[base, compiled, absent]]) + details([base, compiled, absent]))
    assert "1 ms (0.50)" in page and "3 s" in page and "500 ms" in page
    assert "1.0e+00 DISAGREES" in page and "not installed: jax" in page


@pytest.mark.parametrize(
    ("seconds", "text"), [(2.5e-9, "2.5 ns"), (8.9e-7, "890 ns"), (0.01749, "17.5 ms"), (17.9, "17.9 s")]
)
def test_durations_read_well(seconds, text):
    assert duration(seconds) == text


def test_sampling_repeats_short_calls():
    calls = []
    samples = sample(lambda: calls.append(None), budget=0.01)
    assert len(samples) >= FEWEST_SAMPLES and len(calls) > 10 * len(samples)


def test_chart_is_written(tmp_path):
    pytest.importorskip("matplotlib")
    draw = importlib.import_module("benchmarks.chart").draw
    draw([[Outcome(contender("torch"), TINY, [measurement(2e-3)])]], tmp_path / "chart.png")
    assert (tmp_path / "chart.png").stat().st_size > 1000
