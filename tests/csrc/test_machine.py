"""The machine behind the TorchScript interpreter: what its verifier refuses, its loop, and its fast paths beside the operators'
Python functions."""

import math
import random
import signal
import threading
import time

import pytest

import rushlight as torch
from rushlight._C import Machine, MachineCode, machine_bind_exactly, machine_has_fast_path, machine_operations
from rushlight.jit.operators.registry import operators_named, own_names
from rushlight.jit.runtime.objects import ScriptObject
from tests.fuzz_machine import Pair, run_batches

OPERATIONS = machine_operations()


def steps(*given):
    """Instructions by their names: ("OPN", x, taken, given), the numbers 0 where they are left out."""
    return tuple((OPERATIONS[name], *numbers, *(0,) * (3 - len(numbers))) for name, *numbers in given)


def code(given, constants=(), operators=(), functions=(), names=(), types=(), inputs=0, outputs=1, registers=0, is_final=False):
    """Code of instructions."""
    return MachineCode(None, steps(*given), tuple(constants), tuple(operators), tuple(functions), tuple(names), tuple(types),
                       inputs, outputs, registers, is_final)  # fmt: skip


def raise_it(error, places, entered):
    """The callback for errors: they leave as they are."""
    raise error


def machine(codes=None):
    """A machine whose functions are the keys of a dict."""
    return Machine((codes or {}).__getitem__, None, None, raise_it, ScriptObject)


def run(made, *arguments):
    """The results of code."""
    return machine().run(made, list(arguments))


def test_a_loop_counts():
    pushes = [("LOADC", 0), ("LOADC", 1), ("LOADC", 2), ("LOADC", 0), ("LOOP", 7, 4)]
    body = [("STORE", 1), ("STORE", 0), ("LOADC", 2), ("LOAD", 1), ("OPN", 0, 1, 1), ("JMP", -6), ("RET",)]
    made = code([*pushes, *body], (0, 5, True), [("own::next", lambda value: value + 2, None)], registers=2)
    assert run(made) == [10]
    assert made.max_depth == 4


@pytest.mark.parametrize(
    ("given", "options", "message"),
    [
        ([], {}, "empty"),
        ([("RET",)], {}, "too few values"),
        ([("LOADC", 0), ("RET",)], {}, "out of range"),
        ([("LOADC", -1), ("RET",)], {"constants": (1,)}, "out of range"),
        ([("LOAD", 1), ("RET",)], {"registers": 1}, "out of range"),
        ([("LOADC", 0), ("STORE", 5), ("LOADC", 0), ("RET",)], {"constants": (1,), "registers": 1}, "out of range"),
        ([("DROP",), ("RET",)], {"outputs": 0}, "too few values"),
        ([("LOADC", 0)], {"constants": (1,)}, "ends or jumps elsewhere"),
        ([("JMP", 5)], {}, "ends or jumps elsewhere"),
        ([("JMP", -1)], {}, "ends or jumps elsewhere"),
        ([("LOADC", 0), ("JMP", -1)], {"constants": (1,)}, "several depths"),
        ([("LOADC", 0), ("LOADC", 0), ("RET",)], {"constants": (1,)}, "not hold just the results"),
        ([("LOADC", 0), ("LOADC", 0), ("JF", 0), ("RET",)], {"constants": (1,)}, "out of range"),
        ([("LOADC", 0), ("LOADC", 0), ("JF", -1), ("RET",)], {"constants": (1,)}, "out of range"),
        ([("LOADC", 0), ("LOOP", 1, 1), ("RET",)], {"constants": (1,)}, "out of range"),
        ([("OPN", 0, 0, 1), ("RET",)], {}, "out of range"),
        ([("OPN", 0, 1, 1), ("RET",)], {"operators": [("x", len, None)]}, "too few values"),
        ([("OPN", 0, -1, 1), ("RET",)], {"operators": [("x", len, None)]}, "too many values"),
        ([("OPN", 0, 0, 1 << 30), ("RET",)], {"operators": [("x", len, None)]}, "too many values"),
        ([("CALL", 0, 0, 1), ("RET",)], {}, "out of range"),
        ([("GET_ATTR", 0, 1, 1), ("RET",)], {"inputs": 1}, "out of range"),
        ([("DICT_CONSTRUCT", 0, 1, 1), ("RET",)], {"inputs": 1}, "out of range"),
        ([("NAMED_TUPLE_CONSTRUCT", 0, 1, 1), ("RET",)], {"inputs": 1, "types": (list,)}, "out of range"),
        ([("NAMED_TUPLE_CONSTRUCT", 0, 1, 1), ("RET",)], {"inputs": 1, "types": (1,)}, "out of range"),
        ([("ISINSTANCE", 0, 1, 1), ("RET",)], {"inputs": 1, "types": ((1,),)}, "out of range"),
        ([("LIST_CONSTRUCT", 0, 1, 2), ("RET",)], {"inputs": 1, "outputs": 2}, "out of range"),
        ([("RET",)], {"inputs": -1}, "too many inputs"),
        ([("RET",)], {"registers": 1 << 40}, "too many inputs"),
    ],
)
def test_the_verifier_refuses(given, options, message):
    with pytest.raises(ValueError, match=message):
        code(given, **options)


def test_no_such_operation():
    for number in (-1, len(OPERATIONS), len(OPERATIONS) + 1, 1000):
        with pytest.raises(ValueError, match="no such operation"):
            MachineCode(None, ((number, 0, 0, 0),), (), (), (), (), (), 0, 0, 0, False)


@pytest.mark.parametrize(
    "arguments",
    [((1,),), ("ab",), ((1, 2, 3),), (((1 << 40, 0, 0, 0),),)],
)
def test_malformed_instructions(arguments):
    with pytest.raises((TypeError, OverflowError)):
        MachineCode(None, *arguments, (), (), (), (), (), 0, 0, 0, False)


def test_calls_fit_what_is_called():
    called = code([("RET",)], inputs=1)
    for taken, given in ((0, 1), (1, 2), (2, 1)):
        calling = code([*[("LOADC", 0)] * taken, ("CALL", 0, taken, given), ("RET",)], (1,), functions=("called",), outputs=given)
        with pytest.raises(RuntimeError, match="takes 1 values and gives 1"):
            machine({"called": called}).run(calling, [])
    calling = code([("LOADC", 0), ("CALL", 0, 1, 1), ("RET",)], (1,), functions=("called",))
    assert machine({"called": called}).run(calling, []) == [1]
    with pytest.raises(RuntimeError, match="takes 1 values and gives 1, but is called for 0"):
        machine().run(called, [])


def test_operators_give_as_many_results_as_declared():
    for result in (None, (1,), (1, 2, 3), 5):
        made = code([("OPN", 0, 0, 2), ("RET",)], operators=[("x", lambda result=result: result, None)], outputs=2)
        with pytest.raises(RuntimeError, match="should give 2 results"):
            run(made)


def test_endless_recursion():
    codes = {}
    codes["f"] = code([("CALL", 0, 0, 1), ("RET",)], functions=("f",), registers=3)
    with pytest.raises(RecursionError, match="too deeply"):
        machine(codes).run(codes["f"], [])


def test_tail_calls_need_no_depth():
    codes, left = {}, iter([True] * 50_000 + [False])
    again = ("own::again", lambda: next(left), None)
    given = [("LOADC", 0), ("OPN", 0, 0, 1), ("JF", 2), ("TAIL_CALL", 0), ("RET",)]
    codes["f"] = code(given, ("end",), [again], ("f",))
    assert machine(codes).run(codes["f"], []) == ["end"]


def test_loops_can_be_interrupted():
    endless = code([("JMP", 0)], outputs=0)
    previous = signal.signal(signal.SIGALRM, signal.default_int_handler)
    signal.setitimer(signal.ITIMER_REAL, 0.1)
    try:
        with pytest.raises(KeyboardInterrupt):
            run(endless)
    finally:
        signal.signal(signal.SIGALRM, previous)


def test_other_threads_run_beside_a_loop():
    done = threading.Event()
    waiting = code([("OPN", 0, 0, 1), ("JF", 3), ("LOADC", 0), ("RET",), ("JMP", -4)], (7,), [("x", done.is_set, None)])
    found = []
    thread = threading.Thread(target=lambda: found.append(run(waiting)), daemon=True)
    thread.start()
    for _ in range(20):
        time.sleep(0.001)  # needs the interpreter lock again and again
    done.set()
    thread.join(30)
    assert found == [[7]]


def test_a_run_is_given_up_once_it_takes_long():
    endless, asked = code([("JMP", 0)], outputs=0), []
    assert machine().run(endless, [], lambda: asked.append(1) or True, 0.01) is None
    assert asked == [1]
    with pytest.raises(ZeroDivisionError):
        machine().run(endless, [], lambda: 1 / 0, 0.0)
    counting = code([("LOADC", 0), ("LOADC", 1), ("LOADC", 2), ("LOOP", 4, 3), ("DROP",), ("LOADC", 2), ("JMP", -3), ("LOADC", 0),
                     ("RET",)], (0, 5000, True))  # fmt: skip
    assert machine().run(counting, [], lambda: asked.append(2), 0.0) == [0]
    assert asked == [1, 2], "who does not give up is not asked again"


def test_errors_say_where():
    seen = []

    def failed(error, places, entered):
        seen.extend(places)
        raise error

    codes = {"f": MachineCode("inner", steps(("OPN", 0, 0, 1), ("RET",)), (), (("x", lambda: 1 / 0, None),), (), (), (), 0, 1, 0, True)}
    outer = MachineCode("outer", steps(("LOADC", 0), ("CALL", 0, 0, 1), ("DROP",), ("RET",)), (1,), (), ("f",), (), (), 0, 1, 0, True)
    with pytest.raises(ZeroDivisionError):
        Machine(codes.__getitem__, None, None, failed, ScriptObject).run(outer, [])
    assert seen == [("outer", 1), ("inner", 0)]


def test_the_code_of_a_callee_is_kept_where_it_is_final():
    for is_final, wanted in ((True, 1), (False, 3)):
        asked = []
        called = code([("LOADC", 0), ("RET",)], (7,), is_final=is_final)
        calling = code([("CALL", 0, 0, 1), ("RET",)], functions=("f",))
        calls = Machine(lambda function, called=called, asked=asked: asked.append(function) or called, None, None, raise_it, ScriptObject)
        assert [calls.run(calling, []) for _ in range(3)] == [[7]] * 3
        assert len(asked) == wanted


def test_last_arguments_that_are_defaults_are_left_out():
    plain, full = (lambda *values: ("plain", values)), (lambda *values: ("full", values))
    for last, wanted in ((1, ("plain", (5,))), (2, ("full", (5, 2))), (1.0, ("full", (5, 1.0))), (True, ("full", (5, True)))):
        made = code([("OPN", 0, 2, 1), ("RET",)], operators=[("x", full, (plain, (1,)))], inputs=2)
        assert run(made, 5, last) == [wanted]


# Fast paths

INTS = [0, 1, -1, 2, 3, 7, -7, 63, 64, -64, 2**31, 2**53 + 1, 2**62, -(2**63), 2**63 - 1]
FLOATS = [0.0, -0.0, 1.0, -1.5, 2.5, 1e300, -1e300, 1e-320, float("inf"), -float("inf"), float("nan"), 710.0]
STRINGS = ["", "a", "abc", " a b  c ", "a{}b{}", "ab" * 40, "é€😀", "A-b", "abcabc"]
SAMPLES = {
    "int": INTS, "float": FLOATS, "bool": [True, False], "Scalar": [*INTS, *FLOATS, True, 2**70], "str": STRINGS,
    "str?": [None, "a", "", " "], "int?": [None, *INTS], "complex": [1j, 0j], "Device": [torch.device("cpu")],
    "int[]": [[], [1, 2, 3], [3, 1]], "float[]": [[], [1.5, 0.5], [float("nan")]], "bool[]": [[], [True, False]],
    "str[]": [[], ["a", "b"], ["abc"]], "t[]": [[], [1, 2, 3], ["a", "b"], [[1], [2]], [torch.ones(2)]], "t": [1, "a", [1], None],
    "Tensor": [torch.ones(2, 3), torch.tensor(1.5), torch.tensor(3), torch.tensor(True), torch.zeros(0), torch.tensor([float("nan")]),
               torch.tensor([[7]], dtype=torch.int32), torch.tensor(1.5, dtype=torch.float16), torch.ones(1, requires_grad=True),
               torch.nn.Parameter(torch.ones(2)), torch.ones(3, 2).t()],
}  # fmt: skip
ANY = [None, 1, True, "a", 1.5, [1, 2], {"a": 1}, (1, 2), Pair(1, "x"), torch.ones(2).shape, torch.ones(2)]


def samples_of(kind):
    """Values for an argument; of a dict, for its kind of keys."""
    text = kind.ir_text
    if text.startswith("Dict("):
        keys = SAMPLES.get(text[5:].partition(",")[0], [1, 2])[:3]
        return [{}, dict.fromkeys(keys, 1), {keys[-1]: [1]}]
    return [*SAMPLES.get(text, ANY), *random.Random(text).sample(ANY, 2)]


def outcome(call, arguments):
    """What a call does: its result, its error, and what became of the arguments."""
    arguments = [_copied(each) for each in arguments]
    try:
        result = call(*arguments)
    except Exception as error:
        return type(error).__name__, str(error), repr(arguments)
    return type(result), repr(result), repr(arguments), [result is each for each in arguments if isinstance(each, list | dict)]


def _copied(value):
    """A copy whose containers are others and whose tensors are the same: they are keys by identity."""
    if isinstance(value, list):
        return [_copied(item) for item in value]
    if isinstance(value, dict):
        return {key: _copied(item) for key, item in value.items()}
    return value


FAST = [
    each for name in own_names() for each in operators_named(name) if machine_has_fast_path(each.full_name) and each.op is None
]


def drawn(pools, count):
    """Combinations of an item of each pool: all, or `count` of them, without making the others."""
    total = math.prod(map(len, pools))
    found = []
    for number in random.Random(0).sample(range(total), min(total, count)):
        arguments = []
        for pool in pools:
            number, place = divmod(number, len(pool))
            arguments.append(pool[place])
        found.append(tuple(arguments))
    return found


@pytest.mark.parametrize("operator", FAST, ids=lambda operator: operator.full_name)
def test_a_fast_path_gives_what_the_function_gives(operator):
    count, results = len(operator.schema.arguments), len(operator.schema.returns)
    trials = drawn([samples_of(argument.type) for argument in operator.schema.arguments], 2000)
    if "mul" in operator.full_name or "derive_index" in operator.full_name:  # a list or a string, that many times
        trials = [each for each in trials if not any(isinstance(item, list | str) for item in each)
                  or all(abs(item) < 100 for item in each if type(item) is int)]  # fmt: skip
    if "shift" in operator.full_name:  # a number of that many digits
        trials = [each for each in trials if not isinstance(each[1], int) or abs(each[1]) < 10_000 or each[1] > 1 << 62]
    if operator.schema.is_vararg:
        trials, count = [(text, 1, "b") for text in (*STRINGS, 5)], 3
    made = code([("OPN", 0, count, results), ("RET",)], operators=[(operator.full_name, operator.function, None)], inputs=count,
                outputs=results)  # fmt: skip

    def by_machine(*arguments):
        found = machine().run(made, list(arguments))
        return found[0] if results == 1 else None

    def by_function(*arguments):
        found = operator.function(*arguments)
        return found if results == 1 else None

    for arguments in trials[:150]:
        assert outcome(by_machine, arguments) == outcome(by_function, arguments), arguments


def test_a_string_grows_without_changing_others():
    keep = code([("STORE", 0), ("LOAD", 0), ("LOADC", 0), ("OPN", 0, 2, 1), ("LOAD", 0), ("RET",)], ("d",),
                [("aten::add.str", None, None)], inputs=1, outputs=2, registers=1)  # fmt: skip
    text = "".join(["ab", "c"])
    assert run(keep, text) == ["abcd", "abc"]
    assert text == "abc"


# Arguments

FORMS = [
    (int, 1, True), (int, True, False), (int, 1.0, False), (float, 1.0, True), (float, 1, False), (str, "a", True),
    (torch.Tensor, torch.ones(1), True), (torch.Tensor, torch.nn.Parameter(torch.ones(1)), True), (torch.Tensor, 1, False),
    (("list", int), [1, 2], True), (("list", int), [1, True], False), (("list", int), (1, 2), False), (("list", int), [], True),
    (("dict", str, int), {"a": 1}, True), (("dict", str, int), {"a": "b"}, False), (("optional", int), None, True),
    (("optional", int), 1, True), (("optional", int), "a", False), (("list", ("list", int)), [[1], []], True),
    (("list",), [1], False), ("list", [1], False), ((), [1], False), (5, 5, False), (("dict", str), {"a": 1}, False),
]  # fmt: skip


@pytest.mark.parametrize(("form", "value", "fits"), FORMS)
def test_exact_arguments(form, value, fits):
    bound = machine_bind_exactly((form,), (value,))
    assert (bound is not None) == fits
    if fits:
        assert bound[0] is value or bound[0] == value
        assert not isinstance(value, list | dict) or bound[0] is not value


def test_the_number_of_arguments():
    assert machine_bind_exactly((int,), (1, 2)) is None
    assert machine_bind_exactly((), ()) == []
    for wrong in (([int], (1,)), ((int,), [1]), ((int,),)):
        with pytest.raises(TypeError):
            machine_bind_exactly(*wrong)


def test_random_code():
    assert run_batches(range(400))[1] == 0
