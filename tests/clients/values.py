"""PyTorch's values, in values.json by file, client and stage, and comparison with them."""

from __future__ import annotations

import json
from pathlib import Path

from tests.clients.stages import difference

FILE = Path(__file__).with_name("values.json")


def recorded() -> dict:
    """All values that were recorded."""
    return json.loads(FILE.read_text()) if FILE.exists() else {}


def write_values(found: dict[str, list[dict]]) -> None:
    """Records each file's values and keeps those of other files; prints the stages that fail over PyTorch."""
    values = recorded()
    for file, records in found.items():
        for record in records:
            name = (file, record["client"], record["stage"])
            if "error" in record:
                print(*name, record["error"])
            elif record["stage"] != "import":
                values.setdefault(file, {}).setdefault(record["client"], {})[record["stage"]] = record["values"]
    FILE.write_text(_text(values))


def _text(values: dict) -> str:
    """JSON with a line for each client, so that changes can be read."""
    files = []
    for file, clients in values.items():
        lines = [f"  {json.dumps(name)}: {json.dumps(stages, separators=(',', ':'))}" for name, stages in clients.items()]
        files.append(f"{json.dumps(file)}: {{\n" + ",\n".join(lines) + "\n}")
    return "{\n" + ",\n".join(files) + "\n}\n"


def judge(records: list[dict], values: dict) -> list[dict]:
    """The records with a `miss`: an error, a different value, or a value never recorded; None if all agree."""
    return [{**record, "miss": _miss(record, values.get(record["client"], {}))} for record in records]


def _miss(record: dict, values: dict) -> str | None:
    if "error" in record or record["stage"] == "import":
        return record.get("error")
    if record["stage"] not in values:
        return "no value of PyTorch's is recorded"
    return difference(record["values"], values[record["stage"]])
