"""Rushlight: a miniature torch. `import rushlight as torch`."""

from __future__ import annotations

from rushlight import _C, _environment  # before anything imports NumPy

# isort: split
import math
import os as _os
import sys
from importlib import import_module as _import_module

from rushlight import autograd, ops
from rushlight._C import allocator_statistics, empty_cache
from rushlight.autograd import (
    enable_grad,
    inference_mode,
    is_grad_enabled,
    is_inference_mode_enabled,
    no_grad,
    set_grad_enabled,
)
from rushlight.core import dtype as _dtypes
from rushlight.core.device import device
from rushlight.core.dlpack import from_dlpack
from rushlight.core.dtype import (
    bfloat16,
    can_cast,
    complex64,
    complex128,
    dtype,
    finfo,
    float16,
    float32,
    float64,
    get_default_dtype,
    iinfo,
    int8,
    int16,
    int32,
    int64,
    promote_types,
    qint8,
    qint32,
    quint2x4,
    quint4x2,
    quint8,
    set_default_dtype,
    uint8,
)
from rushlight.core.dtype import bool_ as bool
from rushlight.core.generator import Generator
from rushlight.core.layout import (
    _mkldnn,
    channels_last,
    channels_last_3d,
    contiguous_format,
    jagged,
    layout,
    memory_format,
    preserve_format,
    sparse_bsc,
    sparse_bsr,
    sparse_coo,
    sparse_csc,
    sparse_csr,
    strided,
)
from rushlight.core.lazy_module import fetch as _fetch
from rushlight.core.parallel import get_num_threads, set_num_threads
from rushlight.core.providers import set_provider as _set_provider
from rushlight.core.size import Size
from rushlight.core.storage import UntypedStorage
from rushlight.core.tensor import Tensor, from_numpy
from rushlight.core.typed_storage import TypedStorage
from rushlight.ops.bindings import functions as _functions
from rushlight.ops.bindings import install_methods as _install_methods
from rushlight.ops.bindings import is_function as _is_function
from rushlight.ops.construct import as_tensor, asarray, frombuffer, tensor
from rushlight.ops.functional import (
    _assert,
    _assert_async,
    broadcast_shapes,
    broadcast_tensors,
    einsum,
    is_complex,
    is_floating_point,
    is_nonzero,
    is_storage,
    is_tensor,
    nonzero,
    numel,
    result_type,
    typename,
)
from rushlight.ops.functional_linalg import (
    block_diag,
    cartesian_prod,
    cdist,
    chain_matmul,
    eig,
    lstsq,
    lu,
    matrix_rank,
    norm,
    pca_lowrank,
    solve,
    svd_lowrank,
    symeig,
    tensordot,
)
from rushlight.random import default_generator, fork_rng, get_rng_state, initial_seed, manual_seed, seed, set_rng_state

globals().update({kind.name: kind for kind in (*_dtypes.STORED_TYPES, *_dtypes.BITS_TYPES)})
chalf = _dtypes.complex32
half, float, double = float16, float32, float64
short, int, long = int16, int32, int64
cfloat, cdouble = complex64, complex128
e, inf, nan, pi = math.e, math.inf, math.nan, math.pi
newaxis = None
torch = sys.modules[__name__]  # under `import rushlight as torch`, `torch.torch.ops` is found as in torch
__version__ = "0.1.0"

# The jit must not import the compiler, nor serialization the jit: they look these providers up by name.
_set_provider("GPUs", "rushlight.cuda.devices")
_set_provider("graphs of single operators", "rushlight.compiler.device_graphs")
_set_provider("functions of lists on GPUs", "rushlight.compiler.device_lists")
_set_provider("optimizer steps on GPUs", "rushlight.compiler.device_optimizers")
_set_provider("native code of scripted functions", "rushlight.compiler.scripted.native")
_set_provider("loading of TorchScript archives", "rushlight.jit.serialization.loading")
_set_provider("kept native code of archives", "rushlight.compiler.scripted.kept_programs")
_public = _functions()
_install_methods(_public)
globals().update({name: function for name, function in _public.items() if _is_function(name)})

from rushlight import amp, quantized, sparse  # noqa: E402  (they use Tensor's operator methods)
from rushlight.amp import GradScaler, autocast  # noqa: E402
from rushlight.amp.autocast_mode import (  # noqa: E402
    autocast_decrement_nesting,
    autocast_increment_nesting,
    clear_autocast_cache,
    get_autocast_cpu_dtype,
    get_autocast_dtype,
    get_autocast_gpu_dtype,
    is_autocast_cache_enabled,
    is_autocast_cpu_enabled,
    is_autocast_enabled,
    set_autocast_cache_enabled,
    set_autocast_cpu_dtype,
    set_autocast_cpu_enabled,
    set_autocast_dtype,
    set_autocast_enabled,
)
from rushlight.autograd import is_anomaly_check_nan_enabled, is_anomaly_enabled  # noqa: E402
from rushlight.autograd.geometry import resize_as_  # noqa: E402
from rushlight.core.printing import set_printoptions  # noqa: E402
from rushlight.ops import return_types  # noqa: E402
from rushlight.sparse import (  # noqa: E402
    sparse_compressed_tensor,
    sparse_coo_tensor,
    sparse_csc_tensor,
    sparse_csr_tensor,
)
from rushlight.sparse.compressed import (  # noqa: E402
    _convert_indices_from_coo_to_csr,
    _convert_indices_from_csr_to_coo,
)
from rushlight.sparse.products import dsmm, hsmm, hspmm, smm, spmm, sspaddmm  # noqa: E402

# Imported when first asked for, which keeps `import rushlight` short: packages, and functions by the module they are in.
_PACKAGES = (
    "__config__", "_custom_ops", "_dynamo", "_functorch", "_guards", "_higher_order_ops", "_inductor", "_jit_internal",
    "_logging", "_subclasses", "_tensor", "_tensor_str", "_utils", "accelerator", "ao", "aot", "backends", "classes",
    "compiler", "cpu", "cuda", "distributed", "distributions", "explorer", "export", "fft", "func", "functional", "futures",
    "fx", "hub", "inductor", "jit", "library", "linalg", "masked", "mps", "mtia", "multiprocessing", "nested", "nn", "onnx",
    "optim", "overrides", "package", "profiler", "quantization", "quasirandom", "serialization", "signal", "special", "storage",
    "testing", "torch_version", "types", "utils", "version", "xpu",
)  # fmt: skip
_FUNCTIONS = {
    **dict.fromkeys(
        (
            "BFloat16Tensor",
            "BoolTensor",
            "ByteTensor",
            "CharTensor",
            "DoubleTensor",
            "FloatTensor",
            "HalfTensor",
            "IntTensor",
            "LongTensor",
            "ShortTensor",
            "as_strided_",
            "detach_",
            "is_distributed",
            "is_inference",
            "is_same_size",
            "is_signed",
            "from_file",
            "range",
            "_shape_as_tensor",
            "set_default_tensor_type",
            "to_dlpack",
            "unravel_index",
        ),
        "rushlight.legacy",
    ),
    **dict.fromkeys(
        (
            "SymBool",
            "SymFloat",
            "SymInt",
            "_check",
            "_check_index",
            "_check_is_size",
            "_check_not_implemented",
            "_check_tensor_all",
            "_check_type",
            "_check_value",
            "_check_with",
            "sym_float",
            "sym_int",
            "sym_ite",
            "sym_max",
            "sym_min",
            "sym_not",
            "sym_sqrt",
            "sym_sum",
        ),
        "rushlight.sizes",
    ),
    **dict.fromkeys(("AcceleratorError", "OutOfMemoryError"), "rushlight.core.errors"),
    **dict.fromkeys(("Event", "Stream"), "rushlight.core.streams"),
    **dict.fromkeys(
        (
            "BFloat16Storage",
            "BoolStorage",
            "ByteStorage",
            "CharStorage",
            "ComplexDoubleStorage",
            "ComplexFloatStorage",
            "DoubleStorage",
            "FloatStorage",
            "HalfStorage",
            "IntStorage",
            "LongStorage",
            "QInt32Storage",
            "QInt8Storage",
            "QUInt2x4Storage",
            "QUInt4x2Storage",
            "QUInt8Storage",
            "ShortStorage",
        ),
        "rushlight.storage",
    ),
    "PyTorchFileReader": "rushlight.serialization.absent",
    "ScriptModule": "rushlight.jit",
    "Tag": "rushlight.ops.tags",
    "ScriptObject": "rushlight.quantized.saved",
    **dict.fromkeys(
        (
            "AnyType",
            "AwaitType",
            "BoolType",
            "ClassType",
            "ComplexType",
            "DeviceObjType",
            "DictType",
            "EnumType",
            "FloatType",
            "FutureType",
            "IntType",
            "InterfaceType",
            "ListType",
            "NoneType",
            "NumberType",
            "OptionalType",
            "RRefType",
            "StreamObjType",
            "StringType",
            "TensorType",
            "TupleType",
            "Type",
            "UnionType",
        ),
        "rushlight.jit.types.names",
    ),
    "Future": "rushlight.futures",
    "compile": "rushlight.compiler",
    **dict.fromkeys(("cond", "vmap", "while_loop"), "rushlight.func"),
    **dict.fromkeys(
        (
            "_choose_qparams_per_tensor",
            "_empty_affine_quantized",
            "_empty_per_channel_affine_quantized",
            "_make_per_channel_quantized_tensor",
            "_make_per_tensor_quantized_tensor",
            "dequantize",
            "int_repr",
            "q_per_channel_axis",
            "q_per_channel_scales",
            "q_per_channel_zero_points",
            "q_scale",
            "q_zero_point",
            "quantize_per_channel",
            "quantize_per_tensor",
            "quantize_per_tensor_dynamic",
            "quantized_batch_norm",
            "quantized_max_pool1d",
            "quantized_max_pool2d",
            "quantized_max_pool3d",
        ),
        "rushlight.quantized.functions",
    ),
    **dict.fromkeys(
        (
            "per_channel_affine",
            "per_channel_affine_float_qparams",
            "per_channel_symmetric",
            "per_tensor_affine",
            "per_tensor_symmetric",
            "qscheme",
        ),
        "rushlight.core.qscheme",
    ),
    **dict.fromkeys(
        ("load", "load_gguf", "load_safetensors", "save", "save_gguf", "save_safetensors"), "rushlight.serialization"
    ),
    **dict.fromkeys(
        (
            "are_deterministic_algorithms_enabled",
            "get_default_device",
            "get_float32_matmul_precision",
            "get_num_interop_threads",
            "is_deterministic_algorithms_warn_only_enabled",
            "is_warn_always_enabled",
            "set_default_device",
            "set_float32_matmul_precision",
            "set_flush_denormal",
            "set_num_interop_threads",
            "set_warn_always",
            "use_deterministic_algorithms",
            "get_deterministic_debug_mode",
            "set_deterministic_debug_mode",
            "get_device_module",
        ),
        "rushlight.switches",
    ),
}
__all__ = [name for name in (*globals(), *_PACKAGES, *_FUNCTIONS) if not name.startswith("_")]


def _find_binding(name: str):
    """Return an attribute of `torch._C` that is not one of its types: a module, a switch or a part of the jit."""
    if name in _C_MODULES:
        return _fetch(f"{__name__}._C.{name}")
    if name in _C_NAMES:
        return getattr(_import_module("rushlight.c_names"), name)
    if not name.startswith(("_jit_", "_get_graph_", "_set_graph_", "_debug_", "_last_")) and name not in _JIT_TYPES:
        raise AttributeError(f"module 'rushlight._C' has no attribute {name!r}")
    return getattr(_import_module("rushlight.jit.bindings"), name)


_C.__getattr__ = _find_binding
_C.__path__ = [_os.path.join(_os.path.dirname(__file__), "_C_modules")]  # `import rushlight._C._dynamo` finds modules there
_C_MODULES = ("_dynamo", "_functorch", "_jit_tree_views")
_JIT_TYPES = (
    "CompilationUnit", "Graph", "ScriptFunction", "_create_function_from_graph", "merge_type_from_type_comment", "parse_ir",
    "parse_type_comment", "ScriptDict", "ScriptList",
)  # fmt: skip
_C_NAMES = (
    "_DisableTorchDispatch", "_disabled_torch_dispatch_impl", "_get_dispatch_stack_at", "_len_torch_dispatch_stack",
    "DisableTorchFunction", "DisableTorchFunctionSubclass", "DispatchKey", "DispatchKeySet", "Generator", "Value",
    "_ExcludeDispatchKeyGuard", "_TensorMeta", "_are_functorch_transforms_active", "_cuda_isInBadFork",
    "_disabled_torch_function_impl", "_get_accelerator", "_get_function_stack_at", "_has_cuda", "_has_cudnn", "_has_magma",
    "_has_mkldnn", "_has_mps", "_has_xpu",
    "_get_privateuse1_backend_name", "_get_tracing_state", "_has_torch_function", "_has_torch_function_unary",
    "_has_torch_function_variadic", "_is_torch_function_all_disabled", "_is_torch_function_enabled",
    "_is_torch_function_mode_enabled", "_len_torch_function_stack", "_log_api_usage_once", "_nn", "_pop_torch_function_stack",
    "_push_on_torch_function_stack", "has_lapack", "has_openmp",
)  # fmt: skip


def __getattr__(name: str):
    if name in _PACKAGES:
        return _fetch(f"{__name__}.{name}")
    if name in _FUNCTIONS:
        found = globals()[name] = getattr(_fetch(_FUNCTIONS[name]), name)
        return found
    raise AttributeError(f"module {__name__!r} has no attribute {name!r}")


def __dir__():
    return sorted({*globals(), *_PACKAGES, *_FUNCTIONS})
