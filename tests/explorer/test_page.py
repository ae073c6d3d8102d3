"""The explorer's page: the file, what is in it, and what a browser makes of it."""

from __future__ import annotations

import base64
import gzip
import hashlib
import json
import re

import pytest

from rushlight.explorer import page
from rushlight.explorer.page import page_of, recordings_of, write_page
from tests.browser import CHROMIUM, DRIVER, chromium, wait_until
from tests.explorer.recordings import HOSTILE, changed, hostile, large, small

built = pytest.mark.skipif(not page.TEMPLATE.exists(), reason="needs the explorer's page (make page)")
browsed = pytest.mark.skipif(CHROMIUM is None or DRIVER is None, reason="needs chromium and chromedriver")
VIEWS = {
    "Overview": "Where to look", "Capture": "Guards", "Graphs": "def forward", "Inductor": "Operators that became it",
    "Time": "Roofline", "TorchScript": "def forward", "Eager": "Through the dispatcher", "Compare": "(?i)to compare|in numbers",
}  # fmt: skip


def compressed(data: bytes) -> bytes:
    """Without the time, which would be another one in each process that collects the tests."""
    return gzip.compress(data, mtime=0)


def packed(value: object) -> str:
    return in_element(base64.b64encode(compressed(json.dumps(value).encode())).decode())


def in_element(text: str) -> str:
    return f'<script type="application/octet-stream" id="recordings">{text}</script>'


@built
@pytest.mark.parametrize("make", [small, hostile, large])
def test_recordings_come_back(make):
    assert recordings_of(page_of([make()])) == [make()]


@built
def test_two_recordings_in_a_file(tmp_path):
    write_page(tmp_path / "page.html", [small(), changed()])
    assert recordings_of((tmp_path / "page.html").read_text(encoding="utf-8")) == [small(), changed()]


@built
def test_numbers_that_json_lacks():
    with pytest.raises(ValueError, match="JSON"):
        page_of([small() | {"made": float("nan")}])


@built
def test_only_its_own_script_may_run():
    html = page_of([hostile()])
    policy = re.search(r'Content-Security-Policy" content="([^"]*)"', html)[1]
    script = re.search(r"<script>(.*?)</script>", html, re.DOTALL)[1]
    digest = base64.b64encode(hashlib.sha256(script.encode()).digest()).decode()
    assert policy.startswith(f"default-src 'none'; script-src 'sha256-{digest}'; ")
    assert html.count("<script") == html.count("</script") == 2
    assert not re.search(r"<(link|img|iframe|base)\b|\bsrc=", html.replace(script, ""))


@built
def test_licences_of_packages_are_in_the_page():
    html = page_of([])
    comment = html[html.rindex("<!--") : html.rindex("-->")]
    for package in ("@codemirror/view", "@dagrejs/dagre", "preact"):
        assert package in comment
    assert comment.count("Permission is hereby granted, free of charge") >= 3


def test_a_page_that_was_not_built(monkeypatch, tmp_path):
    monkeypatch.setattr(page, "TEMPLATE", tmp_path / "page.html")
    with pytest.raises(FileNotFoundError, match="make page"):
        page_of([small()])


@pytest.mark.parametrize(
    "html, message",
    [
        ("", "no page"),
        ("<p>nothing", "no page"),
        (in_element(""), "no page"),
        (in_element("AAA"), "damaged"),
        (in_element("AAAA"), "damaged"),
        (packed({"version": 1}), "damaged"),
        (packed([1]), "damaged"),
        (in_element(base64.b64encode(compressed(b"[" * 100_000)).decode()), "damaged"),
        (in_element(base64.b64encode(compressed(b"\xff")).decode()), "damaged"),
        (in_element(base64.b64encode(compressed(b"[]")[:-4]).decode()), "end is missing"),
    ],
)
def test_what_is_no_page(html, message):
    with pytest.raises(ValueError, match=message):
        recordings_of(html)


def test_recordings_that_would_fill_the_memory(monkeypatch):
    monkeypatch.setattr(page, "MAX_BYTES", 1000)
    with pytest.raises(ValueError, match="larger than 1000 bytes"):
        recordings_of(in_element(base64.b64encode(compressed(b" " * 1001 + b"[]")).decode()))


@pytest.fixture(scope="module")
def browser(tmp_path_factory):
    with chromium(tmp_path_factory.mktemp("profile"), "--window-size=1280,800") as driver:
        yield driver


@pytest.fixture
def show(browser, tmp_path):
    """Open a page of recordings at a place in it; the browser, whose console is clean at the end."""

    def opened(*recordings, at="/Overview"):
        path = tmp_path / f"{len(list(tmp_path.iterdir()))}.html"
        write_page(path, recordings)
        browser.open(f"file://{path}#{at}")
        browser.wait_for("#app", r"Overview[\s\S]*TorchScript")
        return browser

    yield opened
    assert browser.errors() == []


def go(browser, view):
    browser.run(
        "for (const each of document.querySelectorAll('.views button')) if (each.innerText === arguments[0]) each.click()", view
    )


def lines_with(browser, pane, mark="cm-marked"):
    """The texts of the lines in a pane that have a mark."""
    script = "return [...document.querySelectorAll(arguments[0])].map((line) => line.innerText.trim())"
    return browser.run(script, f"{pane} .cm-line.{mark}")


def hover_line(browser, pane, number):
    """Point at a line, counted from 1, of those that are on the screen."""
    browser.hover(f"{pane} .cm-line:nth-child({number})")


@built
@browsed
@pytest.mark.parametrize("make", [small, hostile])
def test_all_views(show, make):
    browser = show(make())
    for view, pattern in VIEWS.items():
        go(browser, view)
        browser.wait_for("#view", pattern)
    images = "document.querySelectorAll('img:not(.cm-widgetBuffer)').length"
    assert browser.run(f"return [window.ran, {images}, document.scripts.length]") == [None, 0, 2]


@built
@browsed
def test_every_stage(show):
    browser = show(small(), at="/Capture?unit=0")
    seen = [browser.text(".strip [aria-current]")]
    for _ in range(9):
        browser.press("]")
        seen.append(browser.text(".strip [aria-current]"))
    assert seen[:7] == ["summary", "bytecode", "graph", "forward", "kernels", "memory chart", "fusion"]
    assert seen[-1] == "code"


@built
@browsed
def test_texts_are_shown_as_they_are(show):
    browser = show(hostile(), at="/Capture")
    shown = HOSTILE.replace("\ud800", "\ufffd").split("\0")[0]
    assert shown in browser.text("#view")
    assert shown in browser.text(".source .file")


@built
@browsed
def test_a_line_marks_its_code(show):
    browser = show(small(), at="/Inductor?unit=0&stage=3")
    browser.wait_for("#view", "kernel_1")
    hover_line(browser, ".source", 7)
    assert wait_until(lambda: lines_with(browser, "#view")) == CODE_OF_SOFTMAX
    assert lines_with(browser, ".source") == ["return torch.softmax(scores, dim=-1)"]
    assert "75%" in browser.text(".trail")
    assert re.findall(r"forward\s*1", browser.text(".strip"))


CODE_OF_SOFTMAX = ["static void kernel_1(const float* in0, float* out0) {", "softmax(in0, out0);", "}"]


@built
@browsed
def test_code_marks_its_line(show):
    browser = show(small(), at="/Inductor?unit=0&stage=3")
    browser.wait_for("#view", "kernel_1")
    hover_line(browser, "#view", 3)
    assert wait_until(lambda: lines_with(browser, ".source")) == ["scores = x @ w + b"]
    assert "kernel_0" in browser.text(".trail")


@built
@browsed
def test_a_kernel_is_more_precise_than_its_lines(show):
    recording = small()
    twin = dict(recording["units"][0]["kernels"][1], name="kernel_2", code=None, buffers=["buf3"])
    recording["units"][0]["kernels"].append(twin)
    recording["units"][0]["stages"][3]["text"] += "  buf3: Reduction softmax\n"
    recording["units"][0]["stages"][3]["places"].append([6, 6, ["0:7"]])
    browser = show(recording, at="/Inductor?unit=0&stage=4")
    browser.wait_for("#view", "buf3")
    hover_line(browser, "#view", 6)
    assert wait_until(lambda: lines_with(browser, "#view")) == ["buf3: Reduction softmax"]
    assert lines_with(browser, "#view", "cm-marked-soft") == ["buf2: Reduction softmax"]
    assert lines_with(browser, ".source") == ["return torch.softmax(scores, dim=-1)"]
    assert "kernel_2" in browser.text(".trail")


@built
@browsed
def test_a_click_pins_and_the_address_keeps_it(show):
    browser = show(small(), at="/Graphs?unit=0&stage=2")
    browser.click(".source .cm-line:nth-child(5)")
    go(browser, "Inductor")
    address = wait_until(lambda: browser.run("return location.hash.includes('mark=0:5') && location.href"))
    browser.open("about:blank")
    browser.open(address)
    browser.wait_for(".trail", "attend.py:5")
    assert browser.text("[aria-current=page]") == "Inductor"
    browser.press("\ue00c")
    browser.wait_for(".trail", "Point at a line")


@built
@browsed
def test_a_drawn_graph(show):
    browser = show(small(), at="/Graphs?unit=0&stage=2")
    browser.run("for (const each of document.querySelectorAll('.choice button')) if (each.innerText === 'Graph') each.click()")
    browser.wait_for("#view", "7 of 7 nodes drawn")
    hover_line(browser, ".source", 5)
    marked = wait_until(
        lambda: browser.run("return [...document.querySelectorAll('.node.is-marked .name')].map((each) => each.textContent)")
    )
    assert marked == ["aten.mm", "aten.add"]
    browser.hover(".node:nth-last-child(2)")
    assert wait_until(lambda: lines_with(browser, ".source")) == ["return torch.softmax(scores, dim=-1)"]


@built
@browsed
def test_changes_from_the_stage_before(show):
    browser = show(small(), at="/Graphs?unit=0&stage=2")
    browser.run("document.querySelector('.stage-bar .toggle').click()")
    wait_until(lambda: browser.run("return document.querySelectorAll('.cm-deletedChunk').length"))
    assert len(lines_with(browser, "#view", "cm-changedLine")) == 3


@built
@browsed
def test_steps(show):
    browser = show(small(), at="/TorchScript?panel=steps")
    browser.wait_for("#view", "step 1 of 3")
    browser.press("\ue014\ue014")  # the arrow to the right
    browser.wait_for(".values", "positive")
    browser.press("\ue012")
    browser.wait_for("#view", "step 2 of 3")


@built
@browsed
def test_search_and_keys(show):
    browser = show(small())
    browser.press("/softmax")
    browser.wait_for(".hits", "kernel_1 of forward")
    browser.press("\ue007")  # enter
    browser.wait_for(".trail", "kernel_1")
    browser.press("gt")
    browser.wait_for("#view", "Roofline")
    browser.press("\ue00cj")  # escape, then the first line
    browser.wait_for(".trail", "attend.py:5")
    browser.press("?")
    browser.wait_for(".help", "search everything")


@built
@browsed
def test_views_without_data_say_why(show):
    browser = show({"version": 1})
    for view in VIEWS:
        go(browser, view)
        assert browser.wait_for("#view", "record|open").strip()


@built
@browsed
def test_a_large_recording(show):
    browser = show(large(), at="/Inductor?unit=0&stage=2")
    browser.wait_for("#view", "10,000 lines")
    assert browser.run("return document.querySelectorAll('#view .cm-line').length") < 200
    hover_line(browser, ".source", 2)
    wait_until(lambda: lines_with(browser, "#view"))
    go(browser, "Time")
    browser.wait_for("#view", "1,000 kernels")
    assert browser.run("return document.querySelectorAll('#view .row').length") < 200
    go(browser, "Graphs")
    browser.run("for (const each of document.querySelectorAll('.choice button')) if (each.innerText === 'Graph') each.click()")
    browser.wait_for("#view", "of 3000 nodes drawn")
    assert 5 < browser.run("return document.querySelectorAll('.node').length") < 400
    hover_line(browser, ".source", 5)
    assert wait_until(lambda: browser.run("return document.querySelectorAll('.node.is-marked').length"))
    browser.click(".graph-bar input")
    browser.press("relu_1234")
    found = "return [...document.querySelectorAll('.node.found title')].map((each) => each.textContent).join()"
    wait_until(lambda: "relu_1234:" in browser.run(found))


@built
@browsed
def test_two_recordings(show):
    browser = show(small(), changed(), at="/Compare")
    text = browser.wait_for("#view", "Files and stages that differ")
    assert "1 in both, 1 only before, 0 only after" in text
    assert browser.run("return document.querySelector('[aria-label=Recording]').value") == "1"  # the newer one
    assert re.search(r"gone", text) and re.search(r"▲ 100%", text)
    assert re.search(r"Files\s+attend.py", text) and re.search(r"Graphs\s+attend: forward", text)


@built
@browsed
def test_many_small_changes(show):
    before, after = large(), large()
    code = after["units"][0]["stages"][1]
    code["text"] = code["text"].replace("tmp3 = ", "value = ")
    browser = show(before, after, at="/Compare")
    browser.wait_for("#view", "1 text")
    removed = "return [...document.querySelectorAll('.cm-deletedChunk')].map((chunk) => chunk.innerText.trim())"
    assert set(wait_until(lambda: browser.run(removed))) == {"const auto tmp3 = lane.load(in0 + 3);"}
    assert set(lines_with(browser, "#view", "cm-changedLine")) == {"const auto value = lane.load(in0 + 3);"}


@built
@browsed
def test_a_second_page_is_opened(show, tmp_path):
    write_page(tmp_path / "second.html", [changed()])
    (tmp_path / "third.html").write_text("<p>no recording")
    browser = show(small(), at="/Compare")
    browser.choose_file("input[type=file]", tmp_path / "second.html")
    browser.wait_for("#view", "1 only before")
    browser.choose_file("input[type=file]", tmp_path / "third.html")
    browser.wait_for(".trouble", "third.html .* holds no recordings")


@built
@browsed
@pytest.mark.parametrize("timed", [True, False])
def test_runs_by_the_interpreter_are_in_the_time_view(show, timed):
    runs = [{"unit": 2, "name": "Gate.forward", "calls": 7, "seconds": 0.25, "native": 0.125}]
    recording = small() | {"interpreted": runs}
    if not timed:
        for unit in recording["units"]:
            unit["kernels"] = []
    text = show(recording, at="/Time").wait_for("#view", "in the interpreter")
    assert re.search(r"Gate.forward\s+7 runs in the interpreter, 250 ms, of which 125 ms in compiled graphs", text)
    assert ("No kernel was timed" in text) is not timed


@built
@browsed
def test_the_time_for_packing_weights_is_in_the_time_view(show):
    runs = [{"unit": 0, "name": "attend", "calls": 3, "seconds": 0.5, "kernels": 0.25, "median": 0.1, "preparing": 0.125}]
    text = show(small() | {"runs": runs}, at="/Time").wait_for("#view", "around them")
    assert re.search(r"attend\s+3 runs, 500 ms.*250 ms in kernels.*125 ms before them to pack the weights", text, re.DOTALL)


@built
@browsed
@pytest.mark.parametrize("view", ["Time", "Inductor?unit=0&stage=kernels"])
def test_names_of_kernels_are_whole(show, view):
    recording = small()
    for number, kernel in enumerate(recording["units"][0]["kernels"]):
        kernel["name"], kernel["graph"] = f"backward graph {number} kernel_10{number}", "backward"
    browser = show(recording, at=f"/{view}")
    browser.wait_for("#view", "kernel_101")
    cut = (
        "return [...document.querySelectorAll('#view .row > span:first-child')]"
        ".filter((cell) => [cell, ...cell.children].some((each) => each.scrollWidth > each.clientWidth + 1 && each.clientWidth))"
        ".map((cell) => cell.innerText)"
    )
    assert browser.run(cut) == []
    assert browser.run("const body = document.querySelector('#view .table-body'); return body.scrollWidth - body.clientWidth") <= 0
