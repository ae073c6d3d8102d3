"""Whether an operator from outside keeps to what it says of itself: its schema, its rules for shapes and gradients."""

from __future__ import annotations

from collections.abc import Callable, Sequence

from rushlight.autograd import grad as gradients_of
from rushlight.core.dispatch_key import DispatchKey
from rushlight.core.pytree import tree_map
from rushlight.core.tensor import Tensor
from rushlight.fx.fake_tensor import FakeTensorMode
from rushlight.fx.proxy_tensor import make_fx
from rushlight.library.custom_ops import filled, places_of, tensors_in, written_positions
from rushlight.ops.dispatcher import OpOverload
from rushlight.ops.library import OperatorHandle
from rushlight.ops.packet import OpOverloadPacket
from rushlight.testing import assert_close


class OpCheckError(Exception):
    """An operator does something else than it says."""


def opcheck(
    op: OperatorHandle | OpOverload | OpOverloadPacket,
    args: tuple,
    kwargs: dict | None = None,
    *,
    test_utils: str | Sequence[str] | None = None,
    raise_exception: bool = True,
    atol: float | None = None,
    rtol: float | None = None,
) -> dict[str, str | Exception]:
    """Try an operator on arguments; gradients are looked at where tensors among them require grad.

    `test_schema`: it writes to what its schema says, and to nothing else, and shares no memory it does not say.
    `test_autograd_registration`: there is a derivative. `test_faketensor`: the rule for shapes gives sizes, strides and dtypes
    of the results. `test_aot_dispatch_dynamic`: traced with open sizes, it gives the same results and gradients.
    Returns "SUCCESS" or the exception by test. OpCheckError at the first that fails, unless `raise_exception` is False;
    ValueError for the name of another test.
    """
    chosen = tuple(_TESTS) if test_utils is None else (test_utils,) if isinstance(test_utils, str) else tuple(test_utils)
    unknown = set(chosen) - set(_TESTS)
    if unknown:
        raise ValueError(f"opcheck: there is no test {', '.join(sorted(unknown))}; tests are {', '.join(_TESTS)}")
    overload = op._opoverload if isinstance(op, OperatorHandle) else op.default if isinstance(op, OpOverloadPacket) else op
    found: dict[str, str | Exception] = {}
    for name in chosen:
        try:
            _TESTS[name](overload, args, kwargs or {}, {"atol": atol, "rtol": rtol})
            found[name] = "SUCCESS"
        except Exception as error:
            if raise_exception:
                raise OpCheckError(f"opcheck({overload}, ...): {name} failed with {type(error).__name__}: {error}") from error
            found[name] = error
    return found


def _copies(values: object) -> object:
    """Return arguments of the same values in memory of their own."""

    def copied(value: object) -> object:
        return value.detach().clone().requires_grad_(value.requires_grad) if isinstance(value, Tensor) else value

    return tree_map(copied, values)


def _check_schema(op: OpOverload, args: tuple, kwargs: dict, tolerances: dict) -> None:
    given = op.normalize(_copies(args), _copies(kwargs))
    before = _copies(given)
    result = op(*given[: op._schema.positional_count], **_keyword_arguments(op, given))
    written = written_positions(op)
    for position, (now, then) in enumerate(zip(given, before, strict=True)):
        changed = any(not a.detach().equal(b.detach()) for a, b in zip(tensors_in([now]), tensors_in([then]), strict=True))
        if changed and position not in written:
            name = op._schema.arguments[position].name
            raise RuntimeError(f"the operator wrote to argument {name}, of which its schema {op._schema} does not say so")
    own = {id(tensor._impl.storage) for tensor in tensors_in(given)}
    shared = [tensor for tensor in tensors_in([result]) if id(tensor._impl.storage) in own and tensor.numel()]
    if shared and not any(value.alias for value in op._schema.returns):
        raise RuntimeError(f"a result shares its memory with an argument, of which the schema {op._schema} does not say so")


def _keyword_arguments(op: OpOverload, stack: Sequence) -> dict:
    count = op._schema.positional_count
    return {argument.name: value for argument, value in zip(op._schema.arguments[count:], stack[count:], strict=True)}


def _check_registration(op: OpOverload, args: tuple, kwargs: dict, tolerances: dict) -> None:
    if not any(tensor.requires_grad for tensor in tensors_in((*args, *kwargs.values()))):
        return
    if not op.kernels.keys() & {DispatchKey.Autograd, DispatchKey.CompositeImplicitAutograd}:
        raise RuntimeError("tensors require grad, but no autograd formula is registered; see torch.library.register_autograd")


def _check_fake(op: OpOverload, args: tuple, kwargs: dict, tolerances: dict) -> None:
    real = tensors_in([op(*_copies(args), **_copies(kwargs))])
    with FakeTensorMode():
        fake = tensors_in([op(*_copies(args), **_copies(kwargs))])
    if len(real) != len(fake):
        raise RuntimeError(f"the rule for shapes gives {len(fake)} tensors, the operator {len(real)}")
    for index, (have, want) in enumerate(zip(fake, real, strict=True)):
        for what in ("shape", "dtype", "stride"):
            found, expected = (getattr(tensor, what) for tensor in (have, want))
            found, expected = (found(), expected()) if what == "stride" else (found, expected)
            if found != expected:
                raise RuntimeError(f"the rule for shapes gives {what} {found} for result {index}, the operator {expected}")


def _check_traced(op: OpOverload, args: tuple, kwargs: dict, tolerances: dict) -> None:
    given = tensors_in(args)
    shape = [places_of(value) for value in args]

    def call(*tensors: Tensor) -> tuple:
        inputs = [tensor.detach().requires_grad_(like.requires_grad) for tensor, like in zip(tensors, given, strict=True)]
        results = tensors_in([op(*filled(shape, iter(inputs)), **kwargs)])
        leaves = [tensor for tensor in inputs if tensor.requires_grad]
        wanted = [result for result in results if result.requires_grad]
        slopes = gradients_of(sum(result.sum() for result in wanted), leaves, allow_unused=True) if leaves and wanted else ()
        written = [tensor for tensor in inputs if not tensor.requires_grad]
        return tuple(results), tuple(slope for slope in slopes if slope is not None), tuple(written)

    traced = make_fx(call, tracing_mode="symbolic")(*_copies(given))
    expected, found = call(*_copies(given)), traced(*_copies(given))
    for have, want in zip(tensors_in([found]), tensors_in([expected]), strict=True):
        assert_close(have.detach(), want.detach(), **tolerances)


_TESTS: dict[str, Callable] = {
    "test_schema": _check_schema, "test_autograd_registration": _check_registration, "test_faketensor": _check_fake,
    "test_aot_dispatch_dynamic": _check_traced,
}  # fmt: skip
