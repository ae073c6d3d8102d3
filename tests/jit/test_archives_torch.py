"""Archives between torch and rushlight, both ways: scripted and traced modules give the same results, and the same code."""

from __future__ import annotations

import contextlib
import copy
import io
import json
import re
import zipfile
from functools import cache

import pytest

import rushlight
from rushlight.serialization.saving import save as save_weights
from tests.jit import differential
from tests.jit.archives_values import assert_same, encode, to_rushlight
from tests.jit.test_archives import plain
from tests.jit.zoo_of import zoo_of

torch = pytest.importorskip("torch")
pytestmark = [pytest.mark.oracle, pytest.mark.filterwarnings("ignore")]
TORCH = zoo_of("torch")
SAME_CODE = 0.85  # of modules; the others order what they name, or fold constants, otherwise


@cache
def saved_by_torch(name: str) -> tuple:
    """The bytes of a module's archive, the arguments of a call, and torch's result."""
    torch.manual_seed(0)
    module, arguments = TORCH[name]()
    buffer = io.BytesIO()
    torch.jit.save(module, buffer)
    buffer.seek(0)
    result = torch.jit.load(buffer)(*copy.deepcopy(arguments))
    return buffer.getvalue(), to_rushlight(arguments), to_rushlight(result)


@pytest.mark.parametrize("name", TORCH)
def test_torchs_archives_load_here_and_back(name):
    data, arguments, result = saved_by_torch(name)
    module = rushlight.jit.load(io.BytesIO(data))
    assert_same(plain(module(*copy.deepcopy(arguments))), result)
    back = torch.jit.load(io.BytesIO(module.save_to_buffer()))
    torch_arguments = from_rushlight(arguments)
    assert_same(to_rushlight(back(*torch_arguments)), result)


def from_rushlight(value: object) -> object:
    """A value with tensors of torch."""
    if isinstance(value, rushlight.Tensor):
        return torch.from_numpy(value.detach().numpy().copy())
    if isinstance(value, list | tuple):
        return type(value)(from_rushlight(item) for item in value)
    return {key: from_rushlight(item) for key, item in value.items()} if isinstance(value, dict) else value


OWN = zoo_of("rushlight")


@pytest.mark.parametrize("name", OWN)
def test_own_archives_load_in_torch(name):
    rushlight.manual_seed(0)
    module, arguments = OWN[name]()
    result = module(*copy.deepcopy(arguments))
    loaded = torch.jit.load(io.BytesIO(module.save_to_buffer()))
    assert_same(to_rushlight(loaded(*from_rushlight(arguments))), plain(result))


def normalised(code: str) -> str:
    """Code without the numbers of names."""
    return re.sub(r"\b([A-Za-z_]*?)\d+\b", r"\1#", code).strip()


def test_code_prints_as_torch_prints_it():
    same = total = 0
    for name in TORCH:
        data, _, _ = saved_by_torch(name)
        theirs = torch.jit.load(io.BytesIO(data))
        ours = dict(rushlight.jit.load(io.BytesIO(data)).named_modules())
        for path, module in theirs.named_modules():
            if module._c._has_method("forward"):
                total += 1
                same += normalised(module.code) == normalised(ours[path].code)
    assert same >= SAME_CODE * total, (same, total)


def test_parameters_carry_over():
    data, _, _ = saved_by_torch("cnn_scripted")
    theirs, ours = torch.jit.load(io.BytesIO(data)), rushlight.jit.load(io.BytesIO(data))
    assert list(ours.state_dict()) == list(theirs.state_dict())
    assert [name for name, _ in ours.named_parameters()] == [name for name, _ in theirs.named_parameters()]
    assert_same(dict(ours.state_dict()), to_rushlight(dict(theirs.state_dict())))


def test_versions_are_those_that_torch_writes():
    def f(x):
        return rushlight.div(x, 2) + rushlight.full([1], 2.0)

    theirs = torch.jit.CompilationUnit("def f(x):\n    return torch.div(x, 2) + torch.full([1], 2.0)\n").f
    found = [_version(rushlight.jit.script(f).save_to_buffer()), _version(theirs.save_to_buffer())]
    assert found[0] == found[1]


def _version(data: bytes) -> str:
    with zipfile.ZipFile(io.BytesIO(data)) as archive:
        return archive.read(next(name for name in archive.namelist() if name.endswith("/version"))).decode().strip()


OLD = """
def f(x, y, k: int):
    quotients = x / y, x.div(k), x.div(2.0), x.float().div_(k)
    return quotients, torch.full([2], k), torch.full([2], 1.5), torch.nn.functional.gelu(x.float()), k / 2
"""


@pytest.mark.parametrize("version", [3, 4, 5, 8, 9, 10])
def test_old_versions_mean_what_they_did(version):
    data = with_version(torch.jit.CompilationUnit(OLD).f.save_to_buffer(), version)
    arguments = (torch.tensor([7, -7]), torch.tensor([2, 2]), 2)
    expected = to_rushlight(torch.jit.load(io.BytesIO(data))(*arguments))
    assert_same(rushlight.jit.load(io.BytesIO(data))(*to_rushlight(arguments)), expected)


def with_version(data: bytes, version: int) -> bytes:
    """An archive as if an older torch had written it."""
    out = io.BytesIO()
    with zipfile.ZipFile(io.BytesIO(data)) as old, zipfile.ZipFile(out, "w") as new:
        for name in old.namelist():
            new.writestr(name, f"{version}\n".encode() if name.endswith("/version") else old.read(name))
    return out.getvalue()


# Their arguments or results are objects of the user's own classes, or they have defaults, which functions lose in an archive.
OF_USERS = {"enum_values", "enum_strings", "enum_made", "class_argument", "class_returned", "default_arguments",
            "optional_default", "optional_tensor"}  # fmt: skip
PROGRAMS = [each for each in differential.programs() if each.file != "errors" and each.name not in OF_USERS]


@pytest.fixture(scope="module")
def modules(tmp_path_factory):
    folder = tmp_path_factory.mktemp("programs")
    return {
        (path.stem, library.__name__): differential.load(path, library.__name__, folder)
        for path in differential.FOLDER.glob("*.py")
        for library in (rushlight, torch)
    }


def scripted(module, program, library) -> bytes:
    """The archive of a program."""
    library.manual_seed(0)
    target = getattr(module, program.name)
    return library.jit.script(target().eval() if isinstance(target, type) else target).save_to_buffer()


def results(data: bytes, module, program, library) -> list:
    """What an archive gives for the calls of a program."""
    loaded, found = library.jit.load(io.BytesIO(data)), []
    for call in program.calls:
        library.manual_seed(1)
        try:
            with contextlib.redirect_stdout(io.StringIO()):
                found.append(differential.plain(loaded(*eval(call, vars(module))), library))
        except Exception as error:
            found.append(("raises", differential.last_line(error)))
    return found


@pytest.mark.parametrize("file", sorted({each.file for each in PROGRAMS}))
def test_programs_in_archives(file, modules):
    """Every program: torch's archive here, saved again in torch, and our own in torch."""
    ours, theirs = modules[file, "rushlight"], modules[file, "torch"]
    for program in [each for each in PROGRAMS if each.file == file]:
        try:
            data = scripted(theirs, program, torch)
        except Exception:  # torch's language lacks it
            continue
        expected = results(data, theirs, program, torch)
        assert differential.same(results(data, ours, program, rushlight), expected), program
        back = rushlight.jit.load(io.BytesIO(data)).save_to_buffer()
        assert differential.same(results(back, theirs, program, torch), expected), program
        own = scripted(ours, program, rushlight)
        assert differential.same(results(own, theirs, program, torch), expected), program


def test_extra_files_are_torchs():
    data = rushlight.jit.script(lambda_free).save_to_buffer(_extra_files={"a.json": json.dumps(encode(1))})
    extra = {"a.json": ""}
    torch.jit.load(io.BytesIO(data), _extra_files=extra)
    assert extra["a.json"] == b"1"


def lambda_free(x):
    return x + 1


def test_a_checkpoint_is_no_archive(tmp_path):
    save_weights({"a": rushlight.ones(2)}, tmp_path / "w.pt")
    with pytest.raises(RuntimeError, match="no TorchScript archive"):
        rushlight.jit.load(tmp_path / "w.pt")
