"""The explorer's pages of real programs, clicked through in a browser: a line finds its C++, and C++ its line."""

from __future__ import annotations

import re

import pytest

from examples.explorer.gallery import write_pages
from rushlight.explorer import page
from rushlight.explorer.page import recordings_of
from tests.browser import CHROMIUM, DRIVER, chromium, wait_until

pytestmark = [
    pytest.mark.skipif(not page.TEMPLATE.exists(), reason="needs the explorer's page (make page)"),
    pytest.mark.skipif(CHROMIUM is None or DRIVER is None, reason="needs chromium and chromedriver"),
]
VIEWS = ("Overview", "Capture", "Graphs", "Inductor", "Time", "TorchScript", "Eager", "Compare")


@pytest.fixture(scope="module")
def browser(tmp_path_factory):
    with chromium(tmp_path_factory.mktemp("profile"), "--window-size=1280,800") as driver:
        yield driver


@pytest.fixture(scope="module")
def made(tmp_path_factory):
    """Makes the page of a program, and gives it with its recording."""
    folder = tmp_path_factory.mktemp("pages")

    def make(name):
        ((_, found),) = write_pages(folder, (name,))
        if isinstance(found, str):
            pytest.skip(found)
        return found, recordings_of(found.read_text())[0]

    return make


def marked_lines(browser, pane):
    """The texts of the lines in a pane that are marked."""
    script = "return [...document.querySelectorAll(arguments[0] + ' .cm-line.cm-marked')].map((line) => line.innerText)"
    return browser.run(script, pane)


def kernel_with_code(recording):
    """A kernel with C++ whose lines are few, and its unit."""
    for unit in recording["units"]:
        for kernel in unit["kernels"]:
            if kernel["code"] and 1 <= len(kernel["places"]) <= 3 and kernel["calls"]:
                return unit, kernel
    raise AssertionError("no kernel has C++")


@pytest.mark.parametrize("name", ["attend", "breaks", "train_resnet", "encode", "transformers_bert", "silero", "decoder"])
def test_a_page_of_a_program(name, made, browser):
    path, recording = made(name)
    assert recording["error"] is None and recording["units"]
    browser.open(f"file://{path}")
    browser.wait_for("#app", r"Overview[\s\S]*TorchScript")
    for view in VIEWS:
        script = "for (const each of document.querySelectorAll('.views button')) if (each.innerText === arguments[0]) each.click()"
        browser.run(script, view)
        assert browser.wait_for("#view", r"\S")
    assert browser.errors() == []


@pytest.mark.parametrize("name", ["attend", "train_resnet", "encode", "silero", "decoder"])
def test_a_line_and_its_code_mark_one_another(name, made, browser):
    path, recording = made(name)
    unit, kernel = kernel_with_code(recording)
    stage, first, _ = kernel["code"]
    view = "TorchScript" if unit["kind"] == "script" else "Inductor"
    place = kernel["places"][0]
    browser.open("about:blank")
    browser.open(f"file://{path}#/{view}?unit={unit['id']}&stage={stage}&file={place.partition(':')[0]}&mark={place}")
    browser.wait_for("#view", "rl::")
    called = re.sub(r" #\d+$", "", kernel["name"]).split()[-1]
    lines = wait_until(lambda: marked_lines(browser, "#view"))
    (text,) = [each["text"] for each in unit["stages"] if each["id"] == stage]
    wanted = text.split("\n")[first - 1].strip()
    assert wanted in [line.strip() for line in lines] or any(f"{called}(" in line for line in lines)
    assert wait_until(lambda: marked_lines(browser, ".source"))
    assert browser.errors() == []


def test_breaks_are_shown_with_their_reasons(made, browser):
    path, recording = made("breaks")
    reasons = {each["reason"] for unit in recording["units"] for each in unit["breaks"]}
    assert len(reasons) >= 3 and any(unit["recompile"] for unit in recording["units"])
    broken = [unit for unit in recording["units"] if unit["breaks"]]
    for unit in broken[:3]:
        browser.open("about:blank")
        browser.open(f"file://{path}#/Capture?unit={unit['id']}")
        browser.wait_for("#view", re.escape(unit["breaks"][0]["reason"]))
    assert browser.errors() == []


def test_times_add_up_to_the_calls_around_them(made):
    """Kernels are part of the runs that were measured around them, and of a large model nearly all."""
    _, recording = made("train_resnet")
    (unit,) = recording["units"]
    runs = sum(call["seconds"] for call in recording["calls"] if call["timed"])
    assert 0 < sum(kernel["seconds"] for kernel in unit["kernels"]) <= runs
