"""Code: a graph as instructions of a stack machine.

In: a graph. Out: `Code`, which prints: one line per instruction, `LOAD 1`, `OP 0 # aten::add`. Values live in numbered
registers; operators take their arguments from the stack and leave results there. A value's last use takes it from its register
(MOVE).

    OP X        run operator X                           OPN X N     the same with N arguments
    LOAD X      push register X                          MOVE X      push register X and empty it
    LOADC X     push constant X                          STORE X     pop into register X
    STOREN X N  pop N values into registers X..          DROP        pop
    DROPR X     empty register X                         JF X        pop; jump X if it is false
    JMP X       jump by X                                LOOP X N    next round of a loop, or jump X
    RET         end of the function                      CALL X      call function X
    INTERFACE_CALL X N   call method X of the first of N arguments
    GET_ATTR X  SET_ATTR X  CREATE_OBJECT X  ISINSTANCE X  UNCHECKED_CAST X
    LIST_CONSTRUCT X N  TUPLE_CONSTRUCT N  NAMED_TUPLE_CONSTRUCT X N  DICT_CONSTRUCT X N  LIST_UNPACK N  TUPLE_SLICE X N
    FORK X N    WAIT  ENTER  EXIT  RAISE_EXCEPTION
    PROFILE_OP X N  note the types of N values           TYPECHECK X N  push whether N values are of the types of check X
    GUARD X     push whether the top is of type X        FAIL_GUARD X   push False, and be GUARD X from now on
    TAIL_CALL X go on with function X instead of this one: the ways out of failed guards stand behind RET
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import NamedTuple

from rushlight._C import MachineCode
from rushlight.core.lazy_module import LazyModule
from rushlight.jit.function import Function, schema_of_graph
from rushlight.jit.ir.graph import Block, Graph, Node, Value
from rushlight.jit.operators.lookup import operator_of
from rushlight.jit.runtime.primitives import PRIMITIVES
from rushlight.jit.types.kinds import ClassType, TupleType

bailout_graph = LazyModule("rushlight.jit.passes.bailout_graph")


class Instruction(NamedTuple):
    """An operation with two numbers."""

    op: str
    x: int = 0
    n: int = 0


class OperatorCall(NamedTuple):
    """An operator in the machine's form: its full name, and its functions as in `Operator`."""

    name: str
    function: Callable
    plain: tuple[Callable, tuple] | None = None


class Code:
    """The instructions of a graph, and the tables that they index. `is_final`: the function always runs this code."""

    def __init__(self, graph: Graph, name: str, bailout_depth: int = 0, is_final: bool = False):
        self.name = name
        self.bailout_depth = bailout_depth
        self.is_final = is_final
        self.machine_code: MachineCode | None = None
        self.instructions: list[tuple[str, int, int]] = []
        self.counts: list[tuple[int, int]] = []
        """The numbers of inputs and outputs of each instruction's node."""
        self.nodes: Sequence[Node] = []
        self.constants: list[object] = []
        self.operators: list[OperatorCall] = []
        self.operator_names: list[str] = []
        self.functions: list[Function] = []
        self.names: list[str] = []
        self.types: list[object] = []
        self.codes: list[Code] = []
        self.guards: list[int] = []
        self.register_count = 0
        keeper = graph.code_keeper
        if keeper is None or not keeper.fill(self):
            self.input_count = len(graph.inputs)
            self.output_count = len(graph.outputs)
            _CodeEmitter(self, graph).run()
            if keeper is not None:
                keeper.keep(self)

    def __str__(self) -> str:
        return "\n".join(f"{index} {self._text(each)}" for index, each in enumerate(self.instructions)) + "\n"

    def num_bailouts(self) -> int:
        """Return the number of guards that may bail out."""
        return len(self.guards)

    def request_bailout(self, index: int) -> None:
        """Make a guard fail the next time, for tests. IndexError for an unknown one."""
        position = self.guards[index]
        self.instructions[position] = self.instructions[position]._replace(op="FAIL_GUARD")

    def _text(self, instruction: tuple[str, int, int]) -> str:
        op, x, n = instruction
        text = f"{op} {x}" + (f" {n}" if n else "")
        if op in ("OP", "OPN", "TYPECHECK", "PROFILE_OP"):
            return f"{text} # {self.operator_names[x]}"
        if op in ("GET_ATTR", "SET_ATTR", "INTERFACE_CALL"):
            return f"{text} # {self.names[x]}"
        if op in ("GUARD", "FAIL_GUARD"):
            return f"{text} # {self.types[x].ir_text}"
        if op in ("CALL", "TAIL_CALL"):
            return f"{text} # {self.functions[x].name}"
        return f"{text} # {self.constants[x]!r}"[:100] if op == "LOADC" else text


class _CodeEmitter:
    def __init__(self, code: Code, graph: Graph):
        self.code = code
        self.graph = graph
        self.registers: dict[Value, int] = {}
        self.constants: dict[Value, int] = {}
        self.last_use: dict[Value, tuple[Node, int]] = {}
        self.ways_out: list[tuple[int, Node]] = []
        self._find_last_uses(graph.block)

    def run(self) -> None:
        """Emit the whole graph."""
        self.node = self.graph.block.param
        self._store_all(self.graph.inputs)
        self._emit_block(self.graph.block)
        self.node = self.graph.block.result
        self._load_all(self.graph.block.result)
        self._emit("RET")
        for jump, node in self.ways_out:
            self._emit_way_out(jump, node)
        self.code.register_count = len(self.registers)

    # Allocate registers

    def _find_last_uses(self, block: Block) -> None:
        """Record the last use of each value in its own block. That use may move the value out, unless it is inside a loop."""
        for node in [*block.nodes, block.result]:
            for inner in node.blocks:
                self._find_last_uses(inner)
            for index, value in enumerate(node.inputs):
                if value.node.block is block:
                    self.last_use[value] = (node, index)
            for value in self._used_inside(node):
                if value.node.block is block:
                    self.last_use.pop(value, None)
                    self.last_use[value] = (node, -1)

    def _used_inside(self, node: Node) -> set[Value]:
        found: set[Value] = set()
        for block in node.blocks:
            for each in [*block.all_nodes()]:
                found.update(each.inputs)
                for inner in each.blocks:
                    found.update(inner.outputs)
            found.update(block.outputs)
        return found

    def _register_of(self, value: Value) -> int:
        return self.registers.setdefault(value, len(self.registers))

    def _emit(self, op: str, x: int = 0, n: int = 0) -> int:
        self.code.instructions.append(Instruction(op, x, n))
        self.code.nodes.append(self.node)
        # input 0 of prim::CallFunction is the function, which is not on the stack.
        taken = self.node.input_count - (self.node.kind == "prim::CallFunction")
        self.code.counts.append((taken, len(self.node.outputs)))
        return len(self.code.instructions) - 1

    def _patch(self, index: int) -> None:
        """Set the target of the jump at `index` to here."""
        self.code.instructions[index] = self.code.instructions[index]._replace(x=len(self.code.instructions) - index)

    def _emit_load(self, value: Value, reader: Node, index: int) -> None:
        if value.is_constant:
            number = self.constants.get(value)
            if number is None:
                number = self.constants[value] = len(self.code.constants)
                self.code.constants.append(value.constant())
            self._emit("LOADC", number)
            return
        moves = self.last_use.get(value) == (reader, index)
        self._emit("MOVE" if moves else "LOAD", self._register_of(value))

    def _load_all(self, node: Node) -> None:
        for index, value in enumerate(node.inputs):
            self._emit_load(value, node, index)

    def _store_all(self, values) -> None:
        for value in reversed(list(values)):
            if value.uses:
                self._emit("STORE", self._register_of(value))
            else:
                self._emit("DROP")

    # Emit the instructions of nodes

    def _emit_block(self, block: Block) -> None:
        for node in block.nodes:
            self.node = node
            if node.kind == "prim::Constant":
                continue
            emit = _SPECIAL.get(node.kind)
            if emit is not None:
                emit(self, node)
            else:
                self._load_all(node)
                self._emit_operator(node)
                self._store_all(node.outputs)

    def _emit_operator(self, node: Node) -> None:
        self._emit("OPN", self._operator_number(node), node.input_count)

    def _operator_number(self, node: Node) -> int:
        if node.kind in PRIMITIVES:
            call = OperatorCall(node.kind, PRIMITIVES[node.kind](node))
        else:
            operator = operator_of(node)
            if operator is None:
                kinds = ", ".join(value.type.ir_text for value in node.inputs)
                raise RuntimeError(
                    f"unknown operator {node.kind} for arguments of types ({kinds}); see operators_named for those that exist"
                )
            call = OperatorCall(operator.full_name, operator.function, operator.plain)
        self.code.operators.append(call)
        self.code.operator_names.append(node.kind)
        return len(self.code.operators) - 1

    def _emit_if(self, node: Node) -> None:
        self._load_all(node)
        to_else = self._emit("JF")
        self._emit_branch(node, node.blocks[0])
        to_end = self._emit("JMP")
        self._patch(to_else)
        self._emit_branch(node, node.blocks[1])
        self._patch(to_end)
        self.node = node
        self._store_all(node.outputs)

    def _emit_branch(self, node: Node, block: Block) -> None:
        self._emit_block(block)
        self.node = node
        self._load_all(block.result)

    def _emit_loop(self, node: Node) -> None:
        body = node.blocks[0]
        zero = len(self.code.constants)
        self.code.constants.append(0)
        self._emit("LOADC", zero)
        self._load_all(node)
        start = self._emit("LOOP", 0, node.input_count)
        self._store_all(body.inputs)
        self._emit_block(body)
        self.node = node
        self._load_all(body.result)
        self._emit("JMP", start - len(self.code.instructions))
        self._patch(start)
        self._store_all(node.outputs)

    def _call_function(self, node: Node) -> None:
        for index in range(1, node.input_count):
            self._emit_load(node.input(index), node, index)
        function = node.input().constant()
        if not isinstance(function, Function):
            raise RuntimeError("a function that is not known when the code is made cannot be called")
        self._emit("CALL", self._index_in_table(self.code.functions, function))
        self._store_all(node.outputs)

    def _call_method(self, node: Node) -> None:
        self._load_all(node)
        kind = node.input().type
        if isinstance(kind, ClassType):
            self._emit("CALL", self._index_in_table(self.code.functions, kind.find_method(node["name"])))
        else:
            self._emit("INTERFACE_CALL", self._index_in_table(self.code.names, node["name"]), node.input_count)
        self._store_all(node.outputs)

    def _index_in_table(self, table: list, item: object) -> int:
        for index, each in enumerate(table):
            if each is item:
                return index
        table.append(item)
        return len(table) - 1

    def _emit_attribute(self, node: Node) -> None:
        self._load_all(node)
        op = "GET_ATTR" if node.kind == "prim::GetAttr" else "SET_ATTR"
        self._emit(op, self._index_in_table(self.code.names, node["name"]))
        self._store_all(node.outputs)

    def _emit_create(self, node: Node) -> None:
        self._emit("CREATE_OBJECT", self._index_in_table(self.code.types, node.output.type))
        self._store_all(node.outputs)

    def _emit_tuple(self, node: Node) -> None:
        self._load_all(node)
        kind = node.output.type
        if isinstance(kind, TupleType) and kind.name is not None:
            self._emit("NAMED_TUPLE_CONSTRUCT", self._index_in_table(self.code.types, kind), node.input_count)
        else:
            self._emit("TUPLE_CONSTRUCT", node.input_count)
        self._store_all(node.outputs)

    def _list_construct(self, node: Node) -> None:
        self._load_all(node)
        self._emit("LIST_CONSTRUCT", 0, node.input_count)
        self._store_all(node.outputs)

    def _emit_dict_construct(self, node: Node) -> None:
        self._load_all(node)
        self._emit("DICT_CONSTRUCT", 0, node.input_count)
        self._store_all(node.outputs)

    def _emit_unpack(self, node: Node) -> None:
        self._load_all(node)
        self._emit("LIST_UNPACK", len(node.outputs))
        self._store_all(node.outputs)

    def _emit_isinstance(self, node: Node) -> None:
        self._load_all(node)
        self._emit("ISINSTANCE", self._index_in_table(self.code.types, node["types"]))
        self._store_all(node.outputs)

    def _emit_cast(self, node: Node) -> None:
        self._load_all(node)
        self._store_all(node.outputs)

    def _emit_fork(self, node: Node) -> None:
        self._load_all(node)
        self.code.codes.append(Code(node["Subgraph"], f"{self.code.name}.fork"))
        self._emit("FORK", len(self.code.codes) - 1, node.input_count)
        self._store_all(node.outputs)

    def _emit_watching(self, node: Node) -> None:
        self._load_all(node)
        self._emit(_WORDS[node.kind], self._operator_number(node), node.input_count)
        self._store_all(node.outputs)

    def _emit_bailout(self, node: Node) -> None:
        """Emit a guard and a jump to its way out. The value stays on the stack during the check."""
        self._emit_load(node.input(1), node, 1)
        self.code.guards.append(self._emit("GUARD", self._index_in_table(self.code.types, node.output.type)))
        self.ways_out.append((self._emit("JF"), node))
        self._store_all(node.outputs)

    def _emit_way_out(self, jump: int, node: Node) -> None:
        """Emit the way out of a failed guard, after RET: push the live values, and call the rest of the function."""
        self.node = node
        self._patch(jump)
        for value in node.inputs[2:]:
            self._emit_load(value, node, -1)
        template, index = node.input().node["Subgraph"], node["index"]
        rest = Function("bailout", define=lambda made: _define_rest(made, bailout_graph.build_bailout_graph(template, index)))
        rest.depth = max(self.code.bailout_depth, 0)
        self._emit("TAIL_CALL", self._index_in_table(self.code.functions, rest))

    def _emit_nothing(self, node: Node) -> None:
        """Return a template is not executed."""

    def _emit_word(self, node: Node) -> None:
        self._load_all(node)
        self._emit(_WORDS[node.kind], 0, node.input_count)
        self._store_all(node.outputs)


_WORDS = {
    "aten::wait": "WAIT", "prim::Enter": "ENTER", "prim::Exit": "EXIT", "prim::RaiseException": "RAISE_EXCEPTION",
    "prim::TypeCheck": "TYPECHECK", "prim::RequiresGradCheck": "TYPECHECK", "prim::profile": "PROFILE_OP",
}  # fmt: skip
_SPECIAL: dict[str, Callable] = {
    "prim::BailOut": _CodeEmitter._emit_bailout, "prim::BailoutTemplate": _CodeEmitter._emit_nothing,
    "prim::TypeCheck": _CodeEmitter._emit_watching, "prim::RequiresGradCheck": _CodeEmitter._emit_watching,
    "prim::profile": _CodeEmitter._emit_watching,
    "prim::If": _CodeEmitter._emit_if, "prim::Loop": _CodeEmitter._emit_loop, "prim::CallFunction": _CodeEmitter._call_function,
    "prim::CallMethod": _CodeEmitter._call_method, "prim::GetAttr": _CodeEmitter._emit_attribute, "prim::SetAttr":
    _CodeEmitter._emit_attribute,
    "prim::CreateObject": _CodeEmitter._emit_create, "prim::TupleConstruct": _CodeEmitter._emit_tuple,
    "prim::ListConstruct": _CodeEmitter._list_construct, "prim::DictConstruct": _CodeEmitter._emit_dict_construct,
    "prim::TupleUnpack": _CodeEmitter._emit_unpack, "prim::ListUnpack": _CodeEmitter._emit_unpack, "prim::isinstance":
    _CodeEmitter._emit_isinstance,
    "prim::unchecked_cast": _CodeEmitter._emit_cast, "prim::fork": _CodeEmitter._emit_fork,

       "aten::wait": _CodeEmitter._emit_word,
    "prim::Enter": _CodeEmitter._emit_word, "prim::Exit": _CodeEmitter._emit_word,
    "prim::RaiseException": _CodeEmitter._emit_word,
}  # fmt: skip


def _define_rest(function: Function, graph: Graph) -> None:
    function.set_graph(graph, schema_of_graph(function.name, graph))
