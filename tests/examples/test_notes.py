"""The programs of examples/notes: each runs under `rushlight exec`, and with `import rushlight as torch`, and prints what it
should. `PRINTED` has lines that must be there, as regular expressions."""

from __future__ import annotations

import os
import re
import subprocess
import sys
from pathlib import Path

import pytest

ROOT = Path(__file__).parents[2]
FOLDER = ROOT / "examples" / "notes"

PRINTED = {
    "01_jit_trace": [r"^ScriptFunction$", r"= aten::tanh\(%x\) # \S*01_jit_trace.py:7", r"OPN 0 1 # aten::tanh", r"^15 RET 0"],
    "02_jit_log_level": [r"aten::mul is dead and is removed: %unused", r"Before EliminateDeadCode:", r"%c.1 : Tensor = aten::add"],
    "03_debug_dump": [r"aten::mul \['c.1', 'c.1'\] -> \['d.1'\]", r"tensor\(\[4., 4.\]\)"],
    "04_script_tree": [
        r"^\(def\n  \(ident f\)\n  \(decl\n    \(list\n      \(param\n        \(ident a\)\n        \(option\)\n        \(option\)",
        r"\(apply\n          \(.\n            \(variable \(ident torch\)\)\n            \(ident tanh\)\)", r"%e.1 : Tensor = aten::tanh",
    ],
    "05_script_graphs": [
        r"  %c.1 : Tensor = aten::add\(%a.1, %b.1, %\d+\) # \S+:12:8\n  %d.1 : Tensor = aten::mul\(%c.1, %c.1\) # \S+:13:8\n  return \(%d.1\)",
        r"%5 : Tensor = prim::profile\[profiled_type=.*, seen_none=0\]\(%a.1\)\n  %6 : .*\(%b.1\)\n  %c.1 : Tensor = aten::add\(%5, %6, %2\)",
        r"^   = prim::profile\(\)\n  return \(%9\)", r"after runProfilingInsensitiveOptimizations",
    ],
    "06_tensor_views": [r"shares the storage: True", r"expand: True \(0, 1\)", r"repeat: False", r"views: .*'swapaxes'", r"view: 5.0", r"reshape: True False"],
    "07_tree_views": [r"\(for\n", r"\(const 10\)", r"\['Assign', 'For', 'Return'\] True True True", r"~~~ <--- HERE", r"prim::Loop"],
    "08_script_flow": [
        r"traced: \[-1.0, -1.0, -1.0\] scripted: \[1.0, 1.0, 1.0\]", r"if training:", r"script over trace: \[2.0", r"fork and wait: \[2.0",
        r"prim::fork_0",
    ],
    "09_neg": [r"^aten.neg.default \| neg\(Tensor self\) -> Tensor", r"dispatched: aten.neg.default", r"tensor\(\[-1.,  2.\]\) neg"],
    "10_inductor_config": [r"^\{.*'triton.max_block': \{'X': 2048, 'Y': 1024, 'Z': 1024\}.*\}$", r"inside: 32 1", r"outside: 64 "],
    "11_joint_graph": [
        r"class joint_helper\(torch.nn.Module\):", r"# File: \S*11_joint_graph.py:9 in mm, code: return torch.mm\(m1, m2\)",
        r'tangents_1: "f32\[4, 4\]"', r"return \(mm, mm_1, mm_2\)", r"gradient is right: True",
    ],
    "12_compile_stages": [
        r"class GraphModule\(torch.nn.Module\):\n    def forward\(self, L_a_: \"f32\[3\]\", L_b_: \"f32\[3\]\"\):\n        l_a_ = L_a_\n        l_b_ = L_b_\n",
        r"# File: \S*12_compile_stages.py:13 in torch_graph, code: return a \+ b\n        add: \"f32\[3\]\" = l_a_ \+ l_b_;  l_a_ = l_b_ = None\n        return \(add,\)",
        r"class <lambda>\(torch.nn.Module\):\n    def forward\(self, arg0_1: \"f32\[3\]\", arg1_1: \"f32\[3\]\"\):",
        r"%add : \[num_users=1\] = call_function\[target=torch.ops.aten.add.Tensor\]\(args = \(%arg0_1, %arg1_1\), kwargs = \{\}\)",
        r"ComputedBuffer\(name='buf0', layout=FixedLayout\('cpu', torch.float32, size=\[3\], stride=\[1\]\), data=Pointwise\(",
        r"tmp0 = ops.load\(arg0_1, i0\)", r'extern "C" int rushlight_entry', r"tensor\(\[5., 7., 9.\]\)",
    ],
    "13_generated_program": [r"^\d+\.\d{6}$"],
    "14_load_inline": [r"same as in Python: True"],
    "15_bytecode": [r"Instruction\(opname='LOAD_GLOBAL',.*argval='__compiled_fn_1'", r"LOAD_GLOBAL +\d+ \(.*__compiled_fn_1.*\)", r"RETURN_VALUE"],
    "16_fx_interpreter": [r"# File: \S*16_fx_interpreter.py:21 in fn, code: return torch.sigmoid\(x\).neg\(\)", r"sigmoid = torch.sigmoid\(x\);  x = None"],
    "17_script_function": [r"^ScriptFunction \| The input times a factor.", r"\nscaled\(Tensor x, float factor=2.\) -> Tensor", r"tensor\(\[3., 3.\]\)"],
    "18_resolution_callback": [r"\A2\n\Z"],
    "19_script_method": [r"tensor\(\[12., 12.\]\)", r'prim::CallMethod\[name="f"\]\(%self, %x.1\)', r"\(variable\n            \(ident ScriptModule\)\)"],
    "20_build_def": [r"\(variable \(ident Holder\)\)", r"\(ident factor\)\n        \(option\n          \(variable \(ident float\)\)\)", r"\(aug_assign\n", r"tensor\(\[3., 3.\]\)"],
    "21_trace_and_script": [
        r"scripted is right for another length: True", r"traced fails for another length: ", r"trace over script is right for another length: True",
        r"loaded is the same: True",
    ],
    "22_jit_disabled": [r"plain Python sees the type Tensor", r"function \[2.0, 2.0\]"],
    "23_pitfalls": [r"\[2., 2.\]\]\), 3\)", r"torch.mul\(x, 3\)", r"Variable 'y' previously had type Tensor"],
    "24_bert_inputs": [r"token_type_ids: \[0, 0, 0, 0, 0, 0, 0, 0, 1, 1, 1, 1, 1, 1\]", r"padding changes nothing: True", r"head changes the result: True"],
    "25_toy_compile": [
        r"(?s)(Wall time: .*){3}", r"def foo\(a, b, __globals, __closure\):\n    __results = __compiled_fn_1\(a, b\)",
        r"25_toy_compile.py:13 in foo: return torch.add\(a, b\)", r'extern "C" int rushlight_entry',
    ],
    "26_vit": [r"^cpu$", r"compiled, first call: ", r"same result: True"],
    "27_custom_backend": [
        r"call_module  _dropout  _dropout  \(_linear,\)   \{\}", r"placeholder +l_self_modules_linear_parameters_weight_ +L_self_modules_linear_parameters_weight_ ",
        r"placeholder +l_x_ +L_x_ +\(\)", r"call_function +out +.*linear +\(l_x_, l_self_modules_linear_parameters_weight_, ", r"(?s)^True\n.*grad_fn=<AddmmBackward0>\)\nTrue",
    ],
    "28_graph_break": [
        r"^Tracing Error!!", r"def forward\(self, L_x_ : torch.Tensor\):\n    l_x_ = L_x_\n    sum_1 = l_x_.sum\(\);  l_x_ = None\n    gt = sum_1 > 0;  sum_1 = None\n    return \(gt,\)",
        r"mul = 3 \* l_x_;  l_x_ = None", r"mul = l_x_ \* l_x_;  l_x_ = None",
    ],
    "29_frame_callback": [r"\Acalling foo\n3\n7\n11 asked 1 time\n\Z"],
}  # fmt: skip


def test_every_program_is_here_and_described():
    programs = sorted(path.stem for path in FOLDER.glob("*.py"))
    described = (FOLDER / "README.md").read_text()
    assert programs == sorted(PRINTED) and all(f"`{name}.py`" in described for name in programs)


def run(*words: str) -> subprocess.CompletedProcess:
    environment = {**os.environ, "PYTHONPATH": str(ROOT), "PYTHONHASHSEED": "0"}
    return subprocess.run([sys.executable, *words], capture_output=True, text=True, env=environment, cwd=ROOT, timeout=600)


def without_alias(text: str) -> str:
    """A program in which only the import of torch is another."""
    text = re.sub(r"^( *)import torch$", r"\1import rushlight as torch", text, flags=re.MULTILINE)
    return re.sub(r"^( *)(import|from) torch\b", r"\1\2 rushlight", text, flags=re.MULTILINE)


def check(name: str, done: subprocess.CompletedProcess) -> None:
    assert done.returncode == 0, done.stderr
    text = done.stdout if PRINTED[name][0].startswith(r"\A") else done.stdout + done.stderr
    missing = [pattern for pattern in PRINTED[name] if not re.search(pattern, text, re.MULTILINE)]
    assert not missing, f"not printed: {missing}\n{text}"
    assert "/rushlight/" not in "".join(re.findall("# File: (.*)", text)), "a printed graph names a line of the library"


@pytest.mark.parametrize("name", PRINTED)
def test_a_program_in_which_torch_is_rushlight(name):
    check(name, run("-m", "rushlight", "exec", f"examples/notes/{name}.py"))


@pytest.mark.parametrize("name", PRINTED)
def test_a_program_that_imports_rushlight_as_torch(name, tmp_path):
    program = tmp_path / "examples" / "notes" / f"{name}.py"
    program.parent.mkdir(parents=True)
    program.write_text(without_alias((FOLDER / f"{name}.py").read_text()))
    check(name, run(str(program)))
