"""The survey's outcomes as a document: how many cases of each group agree, and why others don't, by kind."""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Mapping

_ABOUT = {
    "zoo": "modules of `tests/jit/archives_zoo.py`",
    "programs": "programs of `tests/jit/programs`",
    "timm": "models of timm, traced by PyTorch",
    "transformers": "models of transformers, traced by PyTorch",
}
_KINDS = (
    ("complex numbers", r"\bcomplex|_fft_|view_as_"),
    ("sizes that depend on values", r"depends on the elements|_unique|nonzero|masked_select|_pack_padded"),
    ("operators without a native form", r"no native form"),
    ("a list or dict among the arguments that is changed", r"is changed, which a caller"),
    ("values that do not cross the interface", r"which has no form in C"),
    ("tensors as text", r"as text"),
    ("PyTorch does not trace it", r"^not traced"),
)
_HEAD = """\
# Which models and programs can be exported

Written by `python -m tests.deploy.survey --write`. Each case is an archive and the arguments of a call. It is exported, built, run three
times without Python, and compared with what PyTorch (timm, transformers) or the interpreter (others) gives for the same arguments.
Weights are random, and inputs small.

| | cases | agree | refused at export | other |
|---|---|---|---|---|
"""


def written(found: Mapping[str, Mapping[str, str]]) -> str:
    """The document. `found` are the outcomes, by group and name."""
    rows = []
    for group, outcomes in found.items():
        kinds = Counter(_class_of(each) for each in outcomes.values())
        rows.append(f"| {_ABOUT[group]} | {len(outcomes)} | {kinds['agrees']} | {kinds['refused']} | {kinds['other']} |")
    parts = [_HEAD + "\n".join(rows)]
    refused = {f"{group}/{name}": text for group, outcomes in found.items() for name, text in outcomes.items()
               if _class_of(text) == "refused"}  # fmt: skip
    if refused:
        parts.append(_refused(refused))
    others = [f"- `{group}/{name}`: {text}" for group, outcomes in found.items() for name, text in outcomes.items()
              if _class_of(text) == "other"]  # fmt: skip
    if others:
        parts.append("\n".join(["## What goes wrong otherwise", "", *others]))
    models = [f"## {_ABOUT[group]}\n\n{', '.join(sorted(name for name, text in found[group].items() if text == 'agrees'))}"
              for group in ("timm", "transformers") if group in found]  # fmt: skip
    parts += [text.replace("## models", "## Models") for text in models]
    return "\n\n".join(parts) + "\n"


def _class_of(outcome: str) -> str:
    return "agrees" if outcome == "agrees" else "refused" if outcome.startswith(("not exported", "not traced")) else "other"


def kind_of(outcome: str) -> str:
    """The kind of reason in a refusal."""
    return next((kind for kind, pattern in _KINDS if re.search(pattern, outcome)), "others")


def _refused(outcomes: Mapping[str, str]) -> str:
    by_kind: dict[str, list[str]] = {}
    for name, outcome in outcomes.items():
        by_kind.setdefault(kind_of(outcome), []).append(name)
    lines = ["## What is refused", "", "| because of | cases | which |", "|---|---|---|"]
    for kind, names in sorted(by_kind.items(), key=lambda item: -len(item[1])):
        shown = ", ".join(f"`{name}`" for name in sorted(names)[:6]) + (", ..." if len(names) > 6 else "")
        lines.append(f"| {kind} | {len(names)} | {shown} |")
    return "\n".join(lines)
