"""Writes docs/clients.md: which stages of which packages match PyTorch's values, and why the others don't."""

from __future__ import annotations

import importlib.metadata
from pathlib import Path

from tests.clients.packages import FILES
from tests.clients.reasons import REASONS

FILE = Path(__file__).parents[2] / "docs" / "clients.md"
COLUMNS = {
    "import": ["import"],
    "build": ["build"],
    "weights": ["load_weights"],
    "forward": ["forward"],
    "backward": ["backward"],
    "step": ["step"],
    "compile": ["compile"],
    "save, load": ["save_and_load", "save_pretrained"],
    "generate": ["generate_greedy", "generate_beam", "generate_sampled", "generate"],
}
OWN = "own"  # the column of all other stages
HEAD = """# Packages that require PyTorch, run over Rushlight

`make clients` installs the packages below without PyTorch, with `packaging/rushlight-torch` in its place, and runs each one's
stages as its users would: import, build a network, load weights, forward, backward, three steps of an optimizer, `torch.compile`,
save and load again, and what the package is there for. A stage counts where its values agree with those that PyTorch 2.14.1 gave
(`tests/clients/values.json`), within a thousandth. Sampled tokens have to be the same tokens. Three kinds of stages are compared
less closely: losses in bfloat16 to one decimal, some estimates from many random numbers by their sizes, and `torch.compile`
against PyTorch's backend "eager".

Configurations are tiny, and weights are made from a parameter's name, so nothing is fetched. The stages are in
`tests/clients/packages`; `make clients-quick` runs the ones that every change has to pass.
"""


def write_report(judged: dict[str, list[dict]]) -> None:
    """Write the document from the records of all files."""
    packages: dict[str, list[dict]] = {}
    for file, records in judged.items():
        packages.setdefault(FILES[file], []).extend({**record, "file": file} for record in records)
    everything = [record for records in packages.values() for record in records]
    parts = [
        HEAD,
        f"**{_count(everything)} stages give PyTorch's values.**\n",
        _table(packages),
        _misses(everything),
        _clients(packages),
    ]
    FILE.write_text("\n".join(part for part in parts if part))


def _count(records: list[dict]) -> str:
    passed = sum(record["miss"] is None for record in records)
    return f"{passed} of {len(records)}" if records else ""


def _column(stage: str) -> str:
    return next((name for name, stages in COLUMNS.items() if stage in stages), OWN)


def _table(packages: dict[str, list[dict]]) -> str:
    columns = [*COLUMNS, OWN]
    lines = ["| package | version | " + " | ".join(columns) + " | all |", "|---" * (len(columns) + 3) + "|"]
    for package, records in packages.items():
        cells = [_cell([record for record in records if _column(record["stage"]) == name]) for name in columns]
        lines.append(f"| {package} | {_version(package)} | " + " | ".join(cells) + f" | {_cell(records)} |")
    return "## Stages by package\n\n*Own* are the stages that only this package has.\n\n" + "\n".join(lines) + "\n"


def _cell(records: list[dict]) -> str:
    """The number of stages that agree: "yes" with the number if all do, else "n of m"."""
    passed = sum(record["miss"] is None for record in records)
    if not records:
        return ""
    return f"yes ({passed})" if passed == len(records) else f"no ({passed} of {len(records)})"


def _version(package: str) -> str:
    return importlib.metadata.version("open_clip_torch" if package == "open_clip" else package)


def _misses(records: list[dict]) -> str:
    missed = [record for record in records if record["miss"] is not None]
    if not missed:
        return ""
    lines = ["| package | client | stage | what came out | why |", "|---|---|---|---|---|"]
    for record in missed:
        reason = REASONS.get((record["file"], record["client"], record["stage"]), "")
        told = record["miss"].replace("|", "\\|")
        lines.append(f"| {FILES[record['file']]} | {record['client']} | {record['stage']} | {told} | {reason} |")
    return "## Misses\n\n" + "\n".join(lines) + "\n"


def _clients(packages: dict[str, list[dict]]) -> str:
    lines = ["## Stages by client\n"]
    for package, records in packages.items():
        lines += [f"### {package}\n", "| client | stages | yes | no |", "|---|---|---|---|"]
        for client in dict.fromkeys(record["client"] for record in records if record["stage"] != "import"):
            own = [record for record in records if record["client"] == client and record["stage"] != "import"]
            yes = ", ".join(record["stage"] for record in own if record["miss"] is None)
            no = ", ".join(record["stage"] for record in own if record["miss"] is not None)
            lines.append(f"| {client} | {_count(own)} | {yes} | {no} |")
        lines.append("")
    return "\n".join(lines)
