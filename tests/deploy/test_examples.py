"""The C examples, built by CMake with each compiler and under sanitizers, and the Rust one: as Python's results."""

from __future__ import annotations

import os
import shutil
import subprocess
import wave
from pathlib import Path

import numpy as np
import pytest

import rushlight as torch
from examples.deploy import export_models
from examples.deploy.decoder import Seq2Seq
from rushlight.deploy.targets import build_library

HERE = Path(__file__).resolve().parents[2] / "examples" / "deploy"
COMPILERS = {"gcc": "g++", "clang": "clang++"}
SANITIZED = "-g -O0 -fsanitize=address,undefined -fno-sanitize-recover=all"
OWN_FLAGS = {"gcc": "", "clang": " -fno-sanitize=function"}  # that check's runtime is in programs linked as C++ only
IDS, LIMIT = [3, 4, 5, 6, 7], 20


@pytest.fixture(scope="module")
def models(tmp_path_factory) -> Path:
    folder = tmp_path_factory.mktemp("models")
    export_models.export_decoder(folder)
    try:
        export_models.export_minilm(folder)
    except (OSError, ImportError):
        pass
    archive = export_models.silero_archive()
    if archive is not None:
        export_models.export_silero(archive, folder)
    return folder


def run(*words: object, cwd: Path | None = None) -> str:
    """What a command prints, which finds no Python."""
    place = {"PATH": os.pathsep.join(each for each in os.environ["PATH"].split(os.pathsep) if "venv" not in each)}
    done = subprocess.run(list(map(str, words)), cwd=cwd, capture_output=True, text=True, timeout=900, env=place)
    assert done.returncode == 0, f"{words}: {done.returncode}\n{done.stdout[-2000:]}\n{done.stderr[-4000:]}"
    return done.stdout


def numbers(text: str) -> np.ndarray:
    return np.array(text.split(), np.float64)


@pytest.mark.parametrize("compiler", COMPILERS)
def test_c_programs(compiler, models, tmp_path):
    """Built by one of the compilers under both sanitizers: those of the models that are there."""
    if not all(map(shutil.which, (compiler, COMPILERS[compiler], "cmake"))):
        pytest.skip(f"needs {compiler} and cmake")
    build = tmp_path / "build"
    chosen = [f"-DCMAKE_C_COMPILER={compiler}", f"-DCMAKE_CXX_COMPILER={COMPILERS[compiler]}", "-DCMAKE_BUILD_TYPE=None"]
    flags = [f"-DCMAKE_{language}_FLAGS={SANITIZED}{OWN_FLAGS[compiler]}" for language in ("C", "CXX")]
    run("cmake", "-S", HERE, "-B", build, f"-DMODELS={models}", *chosen, *flags)
    run("cmake", "--build", build)
    check_decoded(run(build / "seq2seq", models / "decoder" / "decoder.weights", LIMIT, *IDS))
    for program, check in (("sentences", check_sentences), ("speech", check_speech)):
        if (build / program).exists():
            check(build / program, models, tmp_path)


def check_decoded(said: str) -> None:
    torch.manual_seed(0)
    logits, chosen = torch.jit.script(Seq2Seq().eval())(torch.tensor([IDS]), LIMIT)
    symbols, last = said.splitlines()
    assert list(map(int, symbols.split())) == chosen
    np.testing.assert_allclose(numbers(last), logits[0, -1].detach().numpy(), rtol=1e-5, atol=1e-5)


def check_sentences(program: Path, models: Path, scratch: Path) -> None:
    from examples.minilm import load_encoder, model_folder

    ids = [101, 7592, 2088, 102]
    found = numbers(run(program, models / "minilm" / "minilm.weights", "-", *ids))
    encoder = load_encoder(model_folder()).eval()
    expected = encoder(torch.tensor([ids]), torch.ones(1, len(ids), dtype=torch.int64))
    np.testing.assert_allclose(found, expected[0].detach().numpy(), rtol=1e-5, atol=1e-5)


def check_speech(program: Path, models: Path, scratch: Path) -> None:
    sound = (np.random.default_rng(0).normal(size=512 * 9) * np.linspace(0, 6000, 512 * 9)).astype(np.int16)
    with wave.open(str(scratch / "sound.wav"), "wb") as file:
        file.setnchannels(1)
        file.setsampwidth(2)
        file.setframerate(16000)
        file.writeframes(sound.tobytes())
    weights = models / "silero" / "silero.weights"
    found = numbers(run(program, scratch / "sound.wav", weights, "--probabilities"))
    model = torch.jit.load(export_models.silero_archive(), map_location="cpu")
    chunks = torch.from_numpy(sound.astype(np.float32) / 32768).view(9, 1, 512)
    with torch.no_grad():
        expected = [float(model(chunk, 16000)) for chunk in chunks]
    np.testing.assert_allclose(found, expected, rtol=1e-5, atol=1e-5)


@pytest.mark.skipif(shutil.which("rustc") is None, reason="needs rustc")
def test_decoder_from_rust(models, tmp_path):
    folder = models / "decoder"
    build_library(folder, "decoder", flags=("-O1",))
    words = ["rustc", HERE / "seq2seq.rs", "-L", folder, "-l", "decoder", "-C", f"link-arg=-Wl,-rpath,{folder}"]
    done = subprocess.run([*map(str, words), "-o", str(tmp_path / "seq2seq")], capture_output=True, text=True, timeout=300)
    assert done.returncode == 0, done.stderr
    check_decoded(run(tmp_path / "seq2seq", folder / "decoder.weights", LIMIT, *IDS))
    wrong = subprocess.run([tmp_path / "seq2seq", tmp_path / "nothing", "3", "1"], capture_output=True, text=True)
    assert wrong.returncode == 1 and "nothing" in wrong.stderr
