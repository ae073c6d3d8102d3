"""`ONNXProgram`: an exported model in ONNX's form."""

from __future__ import annotations

import os
from typing import Any, BinaryIO

from rushlight.core.tensor import Tensor, from_numpy
from rushlight.export import ExportedProgram
from rushlight.export.unlifted import flatten_inputs
from rushlight.onnx.errors import OnnxExporterError
from rushlight.onnx.packages import need

_LARGEST = 1_900_000_000  # bytes of weights in one file: the format of ONNX files ends at 2 GiB


class ONNXProgram:
    """A model: `model_proto` is ONNX's own object, `exported_program` what it was made from.

    Called like the model, it runs in ONNX Runtime and returns the outputs as a list of tensors.
    """

    def __init__(self, model_proto: Any, exported_program: ExportedProgram) -> None:
        self.model_proto = model_proto
        self.exported_program = exported_program
        self._session: Any = None

    def save(
        self, destination: str | os.PathLike | BinaryIO, *, include_initializers: bool = True,
        keep_initializers_as_inputs: bool = False, external_data: bool | None = None,
    ) -> None:  # fmt: skip
        """Write the model to a file. Weights go to a file beside it, `NAME.data`, with `external_data` or when they are too
        large for one. Without `include_initializers` they are left out.
        """
        onnx, model = need("onnx"), self._copy(include_initializers, keep_initializers_as_inputs)
        if not isinstance(destination, str | os.PathLike):
            destination.write(model.SerializeToString())
            return
        path = os.fspath(destination)
        weights = sum(len(each.raw_data) for each in model.graph.initializer)
        outside = weights > _LARGEST if external_data is None else external_data
        if outside and os.path.exists(f"{path}.data"):
            os.remove(f"{path}.data")  # the package would append to it
        place = {"save_as_external_data": True, "location": f"{os.path.basename(path)}.data", "size_threshold": 0}
        onnx.save_model(model, path, **(place if outside else {}))

    def _copy(self, include_initializers: bool, as_inputs: bool) -> Any:
        model = type(self.model_proto)()
        model.CopyFrom(self.model_proto)
        if as_inputs or not include_initializers:
            helper = need("onnx").helper
            for each in model.graph.initializer:
                model.graph.input.append(helper.make_tensor_value_info(each.name, each.data_type, list(each.dims)))
        if not include_initializers:
            del model.graph.initializer[:]
        return model

    def initialize_inference_session(self) -> None:
        """Make the session of ONNX Runtime that calls use."""
        runtime = need("onnxruntime")
        self._session = runtime.InferenceSession(self.model_proto.SerializeToString(), providers=["CPUExecutionProvider"])

    def __call__(self, *args: Any, **kwargs: Any) -> list[Tensor]:
        if self._session is None:
            self.initialize_inference_session()
        leaves = flatten_inputs(self.exported_program.call_spec.in_spec, args, kwargs)
        tensors = [leaf.detach().cpu().numpy() for leaf in leaves if isinstance(leaf, Tensor)]
        names = [each.name for each in self._session.get_inputs()]
        if len(names) != len(tensors):
            raise OnnxExporterError(f"the model has the inputs {names}, got {len(tensors)} tensors")
        return [from_numpy(result) for result in self._session.run(None, dict(zip(names, tensors, strict=True)))]

    def release(self) -> None:
        """Release the session."""
        self._session = None

    def __repr__(self) -> str:
        inputs = [each.name for each in self.model_proto.graph.input]
        return f"ONNXProgram(inputs={inputs}, exported_program={self.exported_program})"
