"""The pages of examples/browser in headless Chromium: digits that are drawn, speech in a sound file and from the microphone."""

from __future__ import annotations

import math
import shutil
import subprocess
import wave
from pathlib import Path

import numpy as np
import pytest

import rushlight as torch
from rushlight import nn
from rushlight.deploy import export
from rushlight.deploy.targets import build_library, zig_command
from tests.browser import CHROMIUM, DRIVER, chromium, served

pytestmark = [
    pytest.mark.skipif(zig_command() is None, reason="needs Zig's compiler (the package ziglang)"),
    pytest.mark.skipif(CHROMIUM is None or DRIVER is None, reason="needs chromium and chromedriver"),
]
RATE = 22050  # of espeak-ng's sound
SILENCE = 1.0  # seconds


def arc(x: float, y: float, wide: float, high: float, begin: int, end: int) -> list[tuple[float, float]]:
    """Places along an ellipse, by degrees."""
    turns = (math.radians(begin + (end - begin) * step / 16) for step in range(17))
    return [(x + wide * math.cos(turn), y + high * math.sin(turn)) for turn in turns]


STROKES = {
    "0": [arc(128, 128, 55, 95, -90, 270)],
    "1": [[(100, 70), (135, 35), (135, 220)]],
    "3": [arc(120, 80, 50, 48, -150, 90) + arc(120, 175, 55, 48, -90, 150)],
    "4": [[(130, 35), (65, 150), (195, 150)], [(150, 110), (150, 225)]],
    "7": [[(70, 45), (185, 45), (110, 220)]],
}


@pytest.fixture(scope="module")
def pages(tmp_path_factory):
    pytest.importorskip("sklearn")
    build = pytest.importorskip("examples.browser.build")
    folder = tmp_path_factory.mktemp("pages")
    build.build(folder, build.silero_archive())
    return folder


def test_digits(pages, tmp_path):
    with served(pages) as address, chromium(tmp_path) as browser:
        browser.open(f"{address}/digits_page.html")
        browser.wait_for("#status", "Ready")
        found = {}
        for digit, strokes in STROKES.items():
            browser.click("#clear")
            for places in strokes:
                browser.stroke("#drawing", places)
            found[digit] = browser.text("#answer")
        assert found == {digit: digit for digit in STROKES}
        assert browser.run("return document.querySelectorAll('.bar').length") == 10


def spoken(path: Path) -> float:
    """Write a sentence between silences as a WAV file; how long it takes, in seconds."""
    voice = path.with_name("voice.wav")
    subprocess.run(["espeak-ng", "-w", voice, "Somebody speaks in this sound."], check=True, timeout=60)
    with wave.open(str(voice)) as file:
        assert file.getframerate() == RATE
        sound = np.frombuffer(file.readframes(file.getnframes()), np.int16)
    silence = np.zeros(int(SILENCE * RATE), np.int16)
    with wave.open(str(path), "wb") as file:
        file.setnchannels(1)
        file.setsampwidth(2)
        file.setframerate(RATE)
        file.writeframes(np.concatenate([silence, sound, silence]).tobytes())
    return len(sound) / RATE


@pytest.mark.skipif(shutil.which("espeak-ng") is None, reason="needs espeak-ng")
def test_speech(pages, tmp_path):
    if not (pages / "silero.wasm").exists():
        pytest.skip("needs silero-vad")
    sound = tmp_path / "sound.wav"
    length = spoken(sound)
    heard = (
        "--use-fake-device-for-media-stream",
        "--use-fake-ui-for-media-stream",
        f"--use-file-for-fake-audio-capture={sound}",
    )
    with served(pages) as address, chromium(tmp_path / "profile", *heard) as browser:
        browser.open(f"{address}/silero_page.html")
        browser.wait_for("#status", "Ready")
        browser.choose_file("#file", sound)
        browser.wait_for("#status", "times as fast")
        parts = [list(map(float, line.removesuffix(" s").split(" to "))) for line in browser.text("#parts").splitlines()]
        assert parts[0][0] == pytest.approx(SILENCE, abs=0.25)
        assert parts[-1][1] == pytest.approx(SILENCE + length, abs=0.6)
        browser.click("#microphone")
        browser.wait_for("#microphone", "Stop")
        browser.wait_for("#parts", r"\d to \d")
        browser.click("#microphone")
        browser.wait_for("#status", "Ready")
        browser.choose_file("#file", Path(__file__))
        browser.wait_for("#status", "decode")


_PAGE = """<!doctype html><p id="said"></p><script type="module">
import { load, tensor } from "./net.js";
try {
  const model = await load({ threads: 2 });
  const x = tensor(new Float32Array(3 * 40 * 40).map((_, place) => place % 7), [1, 3, 40, 40]);
  const runs = Array.from({ length: 20 }, () => [...model.forward(x).data].join(" "));
  document.querySelector("#said").innerText = model.threads + " threads: " + [...new Set(runs)].join(" | ");
  model.free();
} catch (error) { document.querySelector("#said").innerText = "threads: " + error; }
</script>"""


@pytest.mark.parametrize("isolated", [True, False])
def test_threads_where_a_page_may_have_them(tmp_path, isolated):
    torch.manual_seed(0)
    net = nn.Sequential(nn.Conv2d(3, 16, 3), nn.ReLU(), nn.Conv2d(16, 8, 3), nn.AdaptiveAvgPool2d(1), nn.Flatten()).eval()
    folder = export(net, (torch.rand(1, 3, 40, 40),), tmp_path / "net", name="net")
    build_library(folder, "net", "wasm32-threads" if isolated else "wasm32")
    (folder / "page.html").write_text(_PAGE)
    with served(folder, isolated) as address, chromium(tmp_path / "profile") as browser:
        browser.open(f"{address}/page.html")
        threads, _, found = browser.wait_for("#said", "threads").partition(" threads: ")
    assert threads == ("2" if isolated else "1")
    expected = net((torch.arange(3 * 40 * 40) % 7).float().view(1, 3, 40, 40))
    np.testing.assert_allclose(np.array(found.split(), np.float64), expected[0].detach().numpy(), rtol=1e-4, atol=1e-5)
