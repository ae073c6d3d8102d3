"""What was compiled as one thing, while it is being compiled: a captured function, or a method of TorchScript.

In: the stages of one compilation, as the log hands them over. Out: a unit as a recording has it. Texts and graphs are taken at
once, since passes go on to change them.
"""

from __future__ import annotations

import time
from collections.abc import Sequence
from dataclasses import dataclass, field
from types import CodeType
from typing import TYPE_CHECKING, Any, NamedTuple

from rushlight.dynamo.errors import GraphBreak
from rushlight.dynamo.guarded_code import GuardedCode
from rushlight.explorer import places
from rushlight.explorer.bytecode import bytecode_of
from rushlight.explorer.graphs import graph_of, note_lines
from rushlight.explorer.places import Files, Place
from rushlight.explorer.scripts import ScriptStage, blocks_of_ends
from rushlight.fx.annotations import PACKAGE_FOLDER
from rushlight.fx.graph_module import GraphModule
from rushlight.inductor.build import Library
from rushlight.inductor.codegen.cpp.program import Program
from rushlight.inductor.graph import LoweredGraph
from rushlight.inductor.structured_call import StructuredCall
from rushlight.jit.ir.graph import Graph as ScriptGraph

if TYPE_CHECKING:
    from rushlight.compiler.logs import StageRecord

class StageKind(NamedTuple):
    """How the page shows stages of a name: in which view, under which title, in which language."""

    view: str
    title: str
    language: str


_KINDS = {
    "captured": StageKind("Graphs", "captured by dynamo", "python"),
    "passes": StageKind("Graphs", "", "python"),
    "graph": StageKind("Graphs", "aten, after all passes", "python"),
    "joint": StageKind("Graphs", "forward and backward in one", "python"),
    "partition": StageKind("Graphs", "", "python"),
    "guards": StageKind("Capture", "guards", "python"),
    "bytecode": StageKind("Capture", "the function in its place", "python"),
    "autotune": StageKind("Inductor", "autotuning", "text"),
    "loops": StageKind("Inductor", "loops", "python"),
    "fusion": StageKind("Inductor", "groups: one kernel each", "text"),
    "memory": StageKind("Inductor", "memory plan", "text"),
    "code": StageKind("Inductor", "C++", "cpp"),
    "library": StageKind("Inductor", "library", "text"),
    "module": StageKind("Inductor", "a program that runs the graph alone", "python"),
}  # fmt: skip
_UNKNOWN = StageKind("Inductor", "", "text")


@dataclass
class Stage:
    """One stage of a unit."""

    id: int
    name: str
    part: str
    title: str
    view: str
    language: str
    text: str
    at: float
    seconds: float
    graph: dict | None = None
    base: int | None = None
    places: list[places.Block] = field(default_factory=list)

    def as_dict(self) -> dict[str, Any]:
        """The stage as a recording has it."""
        return {
            "id": self.id, "view": self.view, "stage": self.name, "title": self.title,
            "language": self.language, "text": self.text, "places": self.places,
            "at": self.at, "seconds": self.seconds, "graph": self.graph, "base": self.base,
        }  # fmt: skip


@dataclass
class Piece:
    """A graph that inductor compiled: its program, and the stages that it went through, by name. `namespace` has its code if
    the library holds other graphs, too."""

    part: str
    lowered: LoweredGraph
    program: Program | None = None
    library: Library | None = None
    stages: dict[str, Stage] = field(default_factory=dict)
    namespace: str = ""


class Unit:
    """A compilation of `source`, the code of a function or a graph of TorchScript. `files` numbers the files of the recording,
    `origin` is when that began, and `began` when the compilation did, by `time.perf_counter`. `is_earlier`: that was before the
    recording."""

    def __init__(
        self, number: int, name: str, source: CodeType | ScriptGraph | None, began: float, files: Files, origin: float
    ):  # fmt: skip
        self.number = number
        self.name = name
        self.source = source
        self.began = began
        self.files = files
        self.origin = origin
        self.ended = began
        self.is_earlier = False
        self.steps: dict | None = None
        self.stages: list[Stage] = []
        self.pieces: list[Piece] = []
        self.structured: list[int] = []  # the numbers of structured programs
        self.breaks: list[dict] = []
        self.failed_guards: list[str] = []
        self.notes: list[str] = []
        self.guards: list[str] = []
        self.followed: set[Place] = set()

    @property
    def kind(self) -> str:
        """"capture" of a Python function, or "script"."""
        return "script" if isinstance(self.source, ScriptGraph) else "capture"

    @property
    def code(self) -> CodeType | None:
        """The code of a captured function."""
        return self.source if isinstance(self.source, CodeType) else None

    def add_script_stage(self, made: ScriptStage, number: int, keeps_text: bool) -> None:
        """Take a stage of a TorchScript function."""
        now = time.perf_counter()
        base = self.stages[-1].id if made.is_change else None
        text = made.text if keeps_text else ""
        blocks = blocks_of_ends(text, self.files)
        self.stages.append(Stage(number, made.name, "", made.title, "TorchScript", made.language, text, now - self.origin, 0.0,
                                 base=base, places=blocks))  # fmt: skip

    def heard(self, record: StageRecord, number: int, keeps_text: bool) -> None:
        """Take a stage, which gets a number. Without `keeps_text` its text and graph are left out."""
        seconds, self.ended = max(0.0, record.at - self.ended), record.at
        if record.stage == "graph_breaks":
            self._note_break(record)
        elif record.stage == "recompiles":
            if isinstance(record.subject, list):
                self.failed_guards += record.subject
            else:
                self.notes.append(record.text)
        else:
            self._add(record, number, seconds, keeps_text)
        self.ended = time.perf_counter()

    def _add(self, record: StageRecord, number: int, seconds: float, keeps_text: bool) -> None:
        name, kind = record.stage, _KINDS.get(record.stage, _UNKNOWN)
        title = ", ".join(filter(None, (kind.title, record.title))) or name
        text = record.text if keeps_text else ""
        stage = Stage(number, name, record.title, title, kind.view, kind.language, text, record.at - self.origin, seconds)
        if isinstance(record.subject, GraphModule):
            if keeps_text:
                stage.graph = graph_of(record.subject, self.files)
            stage.base = self._base_of(stage)
        if isinstance(record.subject, GuardedCode):
            self._note_capture(record.subject)
        if isinstance(record.subject, LoweredGraph):
            self.pieces.append(Piece(record.title, record.subject))
        # A recording that begins while another thread compiles hears only the later stages of that graph.
        if isinstance(record.subject, Program) and self.pieces:
            self.pieces[-1].program = record.subject
        if isinstance(record.subject, StructuredCall):
            self._add_regions(record.subject, stage)
        if isinstance(record.subject, Library) and self.pieces:
            self.pieces[-1].library = record.subject
        if kind.view == "Inductor" and self.pieces:
            self.pieces[-1].stages[name] = stage
        self.stages.append(stage)

    def _add_regions(self, program: StructuredCall, code: Stage) -> None:
        """Take the regions of a structured program, whose code is one text with a namespace for each of them."""
        self.structured.append(program.number)
        for number, (lowered, written) in enumerate(program.parts()):
            piece = Piece(f"region {number}", lowered, written, program.library, {"code": code}, f"region_{number}")
            self.pieces.append(piece)

    def _base_of(self, stage: Stage) -> int | None:
        """The stage that a graph is a change of: the pass before, or the joint graph."""
        before = {"passes": "passes", "graph": "passes", "joint": "passes", "partition": "joint"}.get(stage.name)
        if stage.name == "passes" and stage.part == "traced":
            return None
        return next((each.id for each in reversed(self.stages) if each.name == before), None)

    def _note_break(self, record: StageRecord) -> None:
        reason = record.subject
        if isinstance(reason, GraphBreak):
            stack = [self.files.place(frame.filename, frame.lineno) for frame in reason.user_stack]
            self.breaks.append({"reason": reason.reason, "hint": reason.hint, "places": stack})
        else:
            self.breaks.append({"reason": record.text, "hint": "", "places": []})

    def _note_capture(self, found: GuardedCode) -> None:
        if not self.guards:
            self.guards = found.guards.texts()
        for path, lines in found.lines.items():
            if not path.startswith(PACKAGE_FOLDER):
                self.followed.update(self.files.place(path, line) for line in lines if line)

    # After the recording

    def compiled_pieces(self) -> list[tuple[str, Piece]]:
        """The pieces with programs, each with a prefix that tells it apart: its part, or a number where parts repeat."""
        pieces = [piece for piece in self.pieces if piece.program is not None]
        parts = [piece.part for piece in pieces]
        if len(parts) > 1 and ("" in parts or len(set(parts)) < len(parts)):
            parts = [f"{part} graph {number}".strip() for number, part in enumerate(parts)]
        return list(zip(parts, pieces, strict=True))

    def add_own_bytecode(self, number: int) -> None:
        """Add the bytecode of the function that was captured, as a stage before that of the one in its place."""
        place = next((index for index, stage in enumerate(self.stages) if stage.name == "bytecode"), None)
        if place is None or not self._own_lines():
            return
        text, blocks = bytecode_of(self.code, self.files)
        at = self.stages[place].at
        stage = Stage(number, "bytecode", "", "bytecode of the function", "Capture", "bytecode", text, at, 0.0, places=blocks)
        self.stages.insert(place, stage)

    def as_dict(self, failures: Sequence[str]) -> dict[str, Any]:
        """The unit as a recording has it. `failures` say which guards of the same function later calls did not meet."""
        for stage in self.stages:
            stage.places = stage.places or self._places_in(stage)
            if stage.graph is not None:
                note_lines(stage.graph, stage.text)
        own = self._own_lines()
        place = self.files.place(self.code.co_filename, self.code.co_firstlineno) if own else self._place_of_script()
        return {
            "id": self.number, "kind": self.kind, "name": self._name(own), "place": place, "last": max(own, default=None),
            "began": self.began - self.origin, "seconds": self.ended - self.began, "status": self._status(),
            "why": "; ".join(each["reason"] for each in self.breaks) if self._status() == "eager" else "", **self._lines(),
            "breaks": self.breaks, "recompile": {"of": None, "failed": self.failed_guards} if self.failed_guards else None,
            "guards": [{"text": text, "failed": any(failure.startswith(f"{text} (") for failure in failures)}
                       for text in self.guards],
            "notes": self.notes,
            "stages": [stage.as_dict() for stage in self.stages], "kernels": [], "memory": [], "steps": self.steps,
        }  # fmt: skip

    def _place_of_script(self) -> Place | None:
        """The first line that a graph of TorchScript says it comes from."""
        return next((block[2][0] for stage in self.stages if stage.name == "ir" for block in stage.places), None)

    def _own_lines(self) -> list[int]:
        """The lines of the function's body; none where the function is this library's or not known."""
        code = self.code
        if code is None or code.co_filename.startswith(PACKAGE_FOLDER):
            return []
        lines = {line for _, _, line in code.co_lines() if line}
        return sorted(lines - {code.co_firstlineno} or lines)

    def _name(self, own: list[int]) -> str:
        """The function's name, and where it goes on after a graph break."""
        if not own or not self.followed:
            return self.name
        index = self.files.index(self.code.co_filename)
        met = [line for line in own if f"{index}:{line}" in self.followed]
        return f"{self.name} from line {met[0]}" if met and met[0] != own[0] else self.name

    def _status(self) -> str:
        if self.is_earlier:
            return "kept"
        names = {stage.name for stage in self.stages}
        if self.breaks and self.kind == "capture" and "guards" not in names:
            return "eager"  # the backend failed, or nothing was captured at all
        if names & {"captured", "code", "graph"}:
            return "compiled"
        return "interpreted" if self.kind == "script" else "eager"

    def _lines(self) -> dict[str, list[Place]]:
        """The program's lines by what became of them."""
        broken = {each["places"][-1] for each in self.breaks if each["places"]}
        own = {self.files.place(self.code.co_filename, line) for line in self._own_lines()}
        captured = self.followed - broken if self._status() in ("compiled", "kept") else set()
        untouched = own - captured - broken
        return {"captured": sorted(captured), "broken": sorted(broken), "untouched": sorted(untouched)}

    def _places_in(self, stage: Stage) -> list[places.Block]:
        if stage.name == "fusion":
            return places.blocks_above_comments(stage.text, self.files)
        if stage.view == "Graphs" or stage.name in ("loops", "code"):
            return places.blocks_under_comments(stage.text, self.files)
        return []
