"""Who computes the workloads: one class per library, which it imports only in `load`, in a process of its own."""

from __future__ import annotations

import contextlib
import functools
import importlib
import importlib.util
import sys
from collections.abc import Callable
from pathlib import Path

import numpy as np

from benchmarks.workload import Arrays, Workload


class Contender:
    """A library in one way of using it.

    `load` does what is not timed: imports, weights, inputs. `start` gets ready to run and returns the call to time;
    the first call's time counts `start` too. `to_numpy` turns a result into an array.
    """

    packages: tuple[str, ...] = ()
    compiles = True

    def __init__(self, name: str, title: str, default: bool = True) -> None:
        self.name = name
        self.title = title
        self.default = default

    def missing(self) -> list[str]:
        """The packages it needs that are not installed."""
        return [package for package in self.packages if importlib.util.find_spec(package) is None]

    def takes(self, workload: Workload) -> bool:
        """Whether it has a way to run the workload."""
        return True

    def load(self, workload: Workload, inputs: Arrays, weights: Arrays, threads: int, cache: Path) -> None:
        raise NotImplementedError

    def start(self) -> Callable[[], object]:
        raise NotImplementedError

    def mode(self) -> contextlib.AbstractContextManager:
        """What all calls run under."""
        return contextlib.nullcontext()

    def to_numpy(self, result: object) -> np.ndarray:
        return np.asarray(result)


class TorchLike(Contender):
    """PyTorch or Rushlight, eager or compiled."""

    def __init__(
        self, name: str, title: str, package: str, compiles: bool, freezing: bool = False, default: bool = True
    ) -> None:
        super().__init__(name, title, default)
        self.packages = (package,)
        self.compiles = compiles
        self.freezing = freezing

    def load(self, workload: Workload, inputs: Arrays, weights: Arrays, threads: int, cache: Path) -> None:
        self.torch = importlib.import_module(self.packages[0])
        # The model's source says `import rushlight as torch`; here both names mean the library under test.
        sys.modules["rushlight"] = self.torch
        self.torch.set_num_threads(threads)
        if self.freezing:
            importlib.import_module("torch._inductor.config").freezing = True
        self.trains = workload.trains
        with self.torch.no_grad():
            self.function = workload.torch_function(self.torch, weights)
        self.inputs = [self.torch.from_numpy(array) for array in inputs.values()]

    def start(self) -> Callable[[], object]:
        function = self.torch.compile(self.function) if self.compiles else self.function
        return functools.partial(function, *self.inputs)

    def mode(self) -> contextlib.AbstractContextManager:
        if self.trains:
            return contextlib.nullcontext()
        # Freezing takes weights for constants only where no gradient can be asked for later.
        return self.torch.no_grad() if self.freezing else self.torch.inference_mode()

    def to_numpy(self, result: object) -> np.ndarray:
        return result.detach().numpy()


class OnnxRuntime(Contender):
    packages = ("onnxruntime", "onnx")

    def takes(self, workload: Workload) -> bool:
        return type(workload).onnx_model is not Workload.onnx_model

    def load(self, workload: Workload, inputs: Arrays, weights: Arrays, threads: int, cache: Path) -> None:
        self.library = importlib.import_module("onnxruntime")
        self.model = workload.onnx_model(weights)
        self.inputs = inputs
        self.options = self.library.SessionOptions()
        self.options.intra_op_num_threads = threads

    def start(self) -> Callable[[], object]:
        session = self.library.InferenceSession(self.model, self.options, providers=["CPUExecutionProvider"])
        return functools.partial(session.run, None, self.inputs)

    def to_numpy(self, result: object) -> np.ndarray:
        return result[0]


class OpenVino(Contender):
    packages = ("openvino", "onnx")

    def takes(self, workload: Workload) -> bool:
        return type(workload).onnx_model is not Workload.onnx_model

    def load(self, workload: Workload, inputs: Arrays, weights: Arrays, threads: int, cache: Path) -> None:
        self.core = importlib.import_module("openvino").Core()
        self.core.set_property({"CACHE_DIR": str(cache)})
        self.settings = {
            "INFERENCE_NUM_THREADS": threads,
            "PERFORMANCE_HINT": "LATENCY",
            # As all the others; where the processor has bfloat16 instructions, the default would be bfloat16.
            "INFERENCE_PRECISION_HINT": "f32",
        }
        self.model = workload.onnx_model(weights)
        self.inputs = inputs

    def start(self) -> Callable[[], object]:
        model = self.core.read_model(self.model, b"")
        request = self.core.compile_model(model, "CPU", self.settings).create_infer_request()
        return functools.partial(request.infer, self.inputs, share_inputs=True, share_outputs=True)

    def to_numpy(self, result: object) -> np.ndarray:
        return np.array(result[0])


class Jax(Contender):
    packages = ("jax",)

    def load(self, workload: Workload, inputs: Arrays, weights: Arrays, threads: int, cache: Path) -> None:
        self.jax = importlib.import_module("jax")
        self.jax.config.update("jax_compilation_cache_dir", str(cache))
        self.jax.config.update("jax_persistent_cache_min_compile_time_secs", 0)
        numpy = importlib.import_module("jax.numpy")
        # Weights are arguments, as JAX's users have it: as constants of the function they would be folded for minutes.
        self.function = lambda weights, *inputs: workload.array_function(numpy, weights)(*inputs)
        self.weights = {name: numpy.asarray(array) for name, array in weights.items()}
        self.inputs = [numpy.asarray(array) for array in inputs.values()]
        self.own = workload.jax_function(self.jax, self.weights)

    def start(self) -> Callable[[], object]:
        if self.own is not None:
            return functools.partial(self.own, *self.inputs)
        function, weights, inputs = self.jax.jit(self.function), self.weights, self.inputs
        return lambda: function(weights, *inputs).block_until_ready()


CONTENDERS: list[Contender] = [
    TorchLike("rushlight", "Rushlight eager", "rushlight", compiles=False),
    TorchLike("rushlight-compile", "Rushlight compiled", "rushlight", compiles=True),
    TorchLike("torch", "torch eager", "torch", compiles=False),
    TorchLike("torch-compile", "torch.compile", "torch", compiles=True),
    TorchLike("torch-freezing", "torch.compile, freezing", "torch", compiles=True, freezing=True, default=False),
    OnnxRuntime("onnxruntime", "ONNX Runtime"),
    OpenVino("openvino", "OpenVINO"),
    Jax("jax", "JAX jit"),
]
