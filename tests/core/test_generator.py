"""The generator gives torch's numbers for a seed: golden values here, and comparisons where PyTorch is installed."""

from __future__ import annotations

import copy
import pickle
import threading

import numpy as np
import pytest

import rushlight as rl
from rushlight import random
from rushlight.core.generator import DEFAULT_SEED, Generator, default_generator
from rushlight.ops.registry import aten

FLOATS = ("float32", "float64", "float16", "bfloat16")
INTEGERS = ("uint8", "int8", "int16", "int32", "int64")
SIZES = (0, 1, 2, 15, 16, 17, 31, 32, 100, 1000)


def filled(name: str, sizes: tuple[int, ...], kind, *args) -> np.ndarray:
    """A tensor of one dtype after one random operator, as float64."""
    made = rl.empty(sizes, dtype=kind)
    aten(name)(made, *args)
    return made.numpy().astype(np.float64)


def test_raw_draws_are_those_of_mt19937():
    # The 10000th draw for seed 5489 is given by the C++ standard.
    assert Generator().manual_seed(5489).draw32(10000)[-1] == 4123659995


GOLDEN = {
    "uniform_": [0.49625658988952637, 0.7682217955589294, 0.08847743272781372, 0.13203048706054688],
    "normal_": [1.5409960746765137, -0.293428897857666, -2.1787893772125244, 0.5684312582015991],
    "bernoulli_.float": [0.0, 0.0, 1.0, 0.0],
}


@pytest.mark.parametrize("name", GOLDEN)
def test_golden_float32_values(name: str):
    random.manual_seed(0)
    arguments = (0.5,) if name == "bernoulli_.float" else ()
    np.testing.assert_allclose(filled(name, (4,), rl.float32, *arguments), GOLDEN[name], rtol=1e-6)


def test_golden_integers_and_permutation():
    random.manual_seed(0)
    assert filled("random_.from", (4,), rl.int64, 0, 10).tolist() == [4, 9, 3, 0]
    random.manual_seed(0)
    assert aten("randperm")(10).tolist() == [4, 1, 7, 5, 3, 9, 0, 8, 6, 2]


def test_many_normals_are_drawn_in_blocks():
    random.manual_seed(0)
    values = filled("normal_", (20,), rl.float32)
    np.testing.assert_allclose(values[:4], [-1.1258398, -1.1523602, -0.25057858, -0.43387881], rtol=1e-5)


def test_states_are_saved_and_restored():
    generator = Generator().manual_seed(3)
    generator.normal(3)
    saved = generator.get_state()
    first = generator.normal(5)
    generator.set_state(saved)
    np.testing.assert_array_equal(generator.normal(5), first)
    assert generator.initial_seed() == 3


def test_generators_are_copied_and_pickled_with_their_state():
    generator = Generator().manual_seed(9)
    generator.draw32(5)
    for twin in (copy.deepcopy(generator), pickle.loads(pickle.dumps(generator)), generator.clone_state()):
        assert twin.draw32(3).tolist() == copy.copy(generator).clone_state().draw32(3).tolist()


def test_seeds():
    generator = Generator()
    assert generator.initial_seed() == DEFAULT_SEED
    assert generator.manual_seed(-1).initial_seed() == 2**64 - 1
    assert generator.seed() == generator.initial_seed()
    with pytest.raises(RuntimeError, match="expected a seed"):
        generator.manual_seed(2**64)
    with pytest.raises(RuntimeError, match="device"):
        Generator("meta")


def test_bad_states_are_refused():
    generator = Generator()
    before = generator.get_state().tolist()
    with pytest.raises(TypeError, match="ByteTensor"):
        generator.set_state(rl.zeros(5056))
    with pytest.raises(RuntimeError, match="size"):
        generator.set_state(rl.zeros(10, dtype=rl.uint8))
    with pytest.raises(RuntimeError, match="Mersenne"):
        generator.set_state(rl.zeros(5056, dtype=rl.uint8))
    assert generator.get_state().tolist() == before


def test_fork_rng_leaves_the_default_generator_alone():
    random.manual_seed(1)
    before = random.get_rng_state().tolist()
    with random.fork_rng():
        random.manual_seed(5)
        default_generator.draw32(7)
    assert random.get_rng_state().tolist() == before
    with random.fork_rng(enabled=False):
        default_generator.draw32(1)
    assert random.get_rng_state().tolist() != before


def test_an_own_generator_leaves_the_default_one_alone():
    random.manual_seed(1)
    before = random.get_rng_state().tolist()
    x = rl.empty(3)
    aten("uniform_")(x, generator=Generator().manual_seed(0))
    assert x.tolist() == pytest.approx(GOLDEN["uniform_"][:3])
    assert random.get_rng_state().tolist() == before


def test_threads_share_out_the_draws():
    generator = Generator().manual_seed(0)
    parts: list[np.ndarray] = []
    threads = [threading.Thread(target=lambda: parts.append(generator.draw32(10_000))) for _ in range(4)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    together = np.sort(np.concatenate(parts))
    np.testing.assert_array_equal(together, np.sort(Generator().manual_seed(0).draw32(40_000)))


@pytest.mark.parametrize(
    ("name", "kind", "arguments", "error", "text"),
    [
        ("uniform_", rl.float32, (1.0, 0.0), RuntimeError, "from=1 > to=0"),
        ("uniform_", rl.int64, (), NotImplementedError, "not implemented for 'Long'"),
        ("normal_", rl.float32, (0.0, -1.0), RuntimeError, "std >= 0"),
        ("normal_", rl.int64, (), NotImplementedError, "not implemented for 'Long'"),
        ("random_.from", rl.int64, (5, 3), RuntimeError, "from=5 >= to=3"),
        ("random_.from", rl.int8, (0, 200), RuntimeError, "out of bounds"),
        ("bernoulli_.float", rl.float32, (1.5,), RuntimeError, "p to be in"),
    ],
)
def test_bad_arguments(name: str, kind, arguments: tuple, error: type, text: str):
    with pytest.raises(error, match=text):
        filled(name, (3,), kind, *arguments)


def torch_filled(torch, name: str, sizes: tuple[int, ...], kind: str, *args) -> np.ndarray:
    """The same with PyTorch."""
    made = torch.empty(sizes, dtype=getattr(torch, kind))
    getattr(made, name.split(".")[0])(*args)
    return made.double().numpy()


def both(torch, seed: int, name: str, sizes: tuple[int, ...], kind: str, *args) -> tuple[np.ndarray, np.ndarray]:
    """The numbers of Rushlight and of PyTorch, which then stand at the same place of their sequences."""
    random.manual_seed(seed)
    torch.manual_seed(seed)
    got, want = filled(name, sizes, getattr(rl, kind), *args), torch_filled(torch, name, sizes, kind, *args)
    # Behind the draws, the state keeps a normal number, which may differ in its last bit.
    np.testing.assert_array_equal(random.get_rng_state().numpy()[:5016], torch.get_rng_state().numpy()[:5016])
    return got, want


@pytest.mark.oracle
@pytest.mark.parametrize("kind", FLOATS)
@pytest.mark.parametrize("count", SIZES)
def test_floats_are_those_of_torch(kind: str, count: int):
    torch = pytest.importorskip("torch")
    tolerance = {"float32": 2e-6, "float64": 1e-12, "float16": 4e-3, "bfloat16": 3e-2}[kind]
    for seed in (0, 1, 2**40 + 3):
        for name, *args in (("uniform_", -2.0, 3.0), ("uniform_",), ("normal_", 1.0, 2.0), ("normal_",)):
            np.testing.assert_allclose(*both(torch, seed, name, (count,), kind, *args), rtol=tolerance, atol=tolerance)


@pytest.mark.oracle
@pytest.mark.filterwarnings("ignore:.*out of bounds")
@pytest.mark.parametrize("kind", (*FLOATS, *INTEGERS))
@pytest.mark.parametrize("bounds", [(0, 10), (0, 2), (-5, 100), (0, None), (0, 2**27), (0, 2**40), (-(2**40), 2**50)])
def test_integers_are_those_of_torch(kind: str, bounds: tuple):
    torch = pytest.importorskip("torch")
    try:
        torch_filled(torch, "random_", (1,), kind, *bounds)
    except RuntimeError:
        with pytest.raises(RuntimeError):
            filled("random_.from", (1,), getattr(rl, kind), *bounds)
        return
    np.testing.assert_array_equal(*both(torch, 3, "random_.from", (50,), kind, *bounds))


@pytest.mark.oracle
def test_the_order_of_memory_decides_as_in_torch():
    torch = pytest.importorskip("torch")
    random.manual_seed(2)
    torch.manual_seed(2)
    for name in ("uniform_", "normal_", "bernoulli_.float"):
        got, want = rl.empty(5, 4).permute(1, 0), torch.empty(5, 4).permute(1, 0)
        aten(name)(got)
        getattr(want, name.split(".")[0])()
        np.testing.assert_allclose(got.numpy(), want.numpy(), rtol=1e-5, atol=1e-6)


@pytest.mark.oracle
@pytest.mark.parametrize("count", [0, 1, 2, 10, 1000])
def test_permutations_are_those_of_torch(count: int):
    torch = pytest.importorskip("torch")
    random.manual_seed(4)
    torch.manual_seed(4)
    assert aten("randperm")(count).tolist() == torch.randperm(count).tolist()


@pytest.mark.oracle
def test_bernoulli_and_dropout_are_those_of_torch():
    torch = pytest.importorskip("torch")
    with open("/proc/cpuinfo") as lines:
        if "GenuineIntel" in lines.read():
            pytest.skip("PyTorch draws these numbers from Intel's vector library on Intel's CPUs")
    np.testing.assert_array_equal(*both(torch, 5, "bernoulli_.float", (1000,), "float32", 0.3))
    random.manual_seed(6)
    torch.manual_seed(6)
    kept = aten("native_dropout")(rl.ones(7, 9), 0.4, True)[0]
    np.testing.assert_allclose(kept.numpy(), torch.nn.functional.dropout(torch.ones(7, 9), 0.4).numpy(), rtol=1e-6)


@pytest.mark.oracle
def test_states_are_exchanged_with_torch():
    torch = pytest.importorskip("torch")
    theirs, ours = torch.Generator().manual_seed(11), Generator()
    torch.randn(3, generator=theirs)
    ours.set_state(rl.from_numpy(theirs.get_state().numpy().copy()))
    want = torch.randn(3, generator=theirs, dtype=torch.float64)
    np.testing.assert_allclose(ours.normal(3), want.numpy(), rtol=1e-12)
    theirs.set_state(torch.from_numpy(ours.get_state().numpy()))
    np.testing.assert_array_equal(ours.uniform32(4), torch.rand(4, generator=theirs).numpy())


def test_seeds_are_ints():
    for seed in (1.5, "1", None):
        with pytest.raises(RuntimeError, match="manual_seed expected a long, but got"):
            Generator().manual_seed(seed)
    assert random.manual_seed(np.int64(3)).initial_seed() == 3


@pytest.mark.oracle
def test_states_move_to_torch_and_back():
    torch = pytest.importorskip("torch")
    for seed in (0, 5, -3, 2**63):
        ours, theirs = Generator().manual_seed(seed), torch.Generator().manual_seed(seed)
        assert ours.initial_seed() == theirs.initial_seed()
        rl.randn(7, generator=ours)
        torch.randn(7, generator=theirs)
        assert np.array_equal(ours.get_state().numpy(), theirs.get_state().numpy())
        moved = Generator().set_state(rl.from_numpy(theirs.get_state().numpy().copy()))
        assert np.array_equal(rl.rand(9, generator=moved).numpy(), torch.rand(9, generator=theirs).numpy())
        assert moved.clone_state().get_state().tolist() == moved.get_state().tolist()


def test_fork_rng_and_states():
    random.manual_seed(2)
    before = random.get_rng_state()
    with random.fork_rng():
        random.seed()
        rl.rand(3)
    assert random.get_rng_state().tolist() == before.tolist()
    with random.fork_rng(enabled=False):
        rl.rand(3)
    assert random.get_rng_state().tolist() != before.tolist()
    random.set_rng_state(before)
    assert random.get_rng_state().tolist() == before.tolist()
