"""Plan how a compiled program's results are made from the graph's outputs and the program's inputs.

In: the fake results of a traced program, and the fakes of its inputs (the primals). Out: which results the graph has to
compute, and which are views of what. A view has the history and the version counter of its base, as in eager, so it is made
outside of the graph. Stage: aot, while the joint graph is traced.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field

from rushlight.aot.errors import Untraceable
from rushlight.autograd.grad_mode import enable_grad
from rushlight.core.algebra import Expr
from rushlight.core.dispatch_key import LAZY_BITS
from rushlight.core.strides import has_internal_overlap
from rushlight.core.symbolic import SymInt
from rushlight.core.tensor import Tensor, wrap
from rushlight.ops.lazy_views import toggle_lazy_bits
from rushlight.ops.packet import namespaces

aten = namespaces.namespace("aten")


@dataclass(frozen=True)
class Plain:
    """A result that is not a tensor."""

    value: object


@dataclass(frozen=True)
class Computed:
    """The graph's output number `position`."""

    position: int


@dataclass(frozen=True)
class View:
    """A view of the primal or output number `position`; `offset` counts from its first element. `is_whole`: it is that tensor.
    `turned`: the conjugate and negative bits in which the view differs from its base.

    Sizes, strides and offsets that are not known before the call are `Computed`.
    """

    of_primal: bool
    position: int
    size: tuple
    stride: tuple
    offset: int | Computed
    requires_grad: bool
    is_whole: bool = False
    turned: int = 0


Result = Plain | Computed | View


@dataclass
class Results:
    """The program's results in order, and the fakes of the tensors and sizes that the graph computes for them."""

    results: list[Result] = field(default_factory=list)
    computed: list[Tensor | SymInt] = field(default_factory=list)

    @property
    def hidden(self) -> bool:
        """Whether the graph computes tensors of which the program returns only views."""
        used = {result.position for result in self.results if isinstance(result, Computed)}
        return any(position not in used for position, value in enumerate(self.computed) if isinstance(value, Tensor))

    def rebuild(self, computed: Sequence[Tensor | int], primals: Sequence[Tensor]) -> tuple:
        """Make the program's results from real tensors."""
        return tuple([_make(result, computed, primals) for result in self.results])


def _make(result: Result, computed: Sequence[Tensor | int], primals: Sequence[Tensor]) -> object:
    if isinstance(result, Computed):
        return computed[result.position]
    if isinstance(result, Plain):
        return result.value
    base = (primals if result.of_primal else computed)[result.position]
    if result.is_whole:
        return base
    impl = base._impl
    size, stride = _fill_in_computed(result.size, computed), _fill_in_computed(result.stride, computed)
    offset = impl.storage_offset + _fill_in_computed((result.offset,), computed)[0]
    if not result.requires_grad:
        made = impl.alias(size, stride, offset)
        made.key_set ^= result.turned
        return wrap(made)
    with enable_grad():
        return toggle_lazy_bits(aten.as_strided(base, size, stride, offset), result.turned)


def _fill_in_computed(numbers: tuple, computed: Sequence[Tensor | int]) -> tuple:
    return tuple([computed[number.position] if type(number) is Computed else number for number in numbers])


def plan_results(outputs: Sequence[object], primals: Sequence[Tensor]) -> Results:
    """Say for each output of a traced program where it comes from. Untraceable if memory is viewed as another dtype, or if

    `as_strided` would have other gradients than the view that it replaces.
    """
    return _Planner(primals).plan(outputs)


class _Planner:
    def __init__(self, primals: Sequence[Tensor]):
        self.primals = list(primals)
        self.plan_of = Results()
        self._position: dict[int | Expr, int] = {}
        self._primal_of: dict[int, int] = {}
        tensors = {position: fake for position, fake in enumerate(primals) if isinstance(fake, Tensor)}
        for position, fake in tensors.items():
            self._primal_of.setdefault(id(fake._impl.storage), position)
        self._exact = {id(fake._impl): position for position, fake in tensors.items()}

    def plan(self, outputs: Sequence[object]) -> Results:
        tensors = [value for value in outputs if isinstance(value, Tensor)]
        self._roots = _roots_of_shared_memory(tensors)
        for value in outputs:
            self.plan_of.results.append(self._plan_tensor(value) if isinstance(value, Tensor) else self._plan_plain(value))
        return self.plan_of

    def _plan_plain(self, value: object) -> Result:
        number = self._plan_number(value) if type(value) is SymInt else value
        return number if type(number) is Computed else Plain(number)

    def _plan_tensor(self, value: Tensor) -> Result:
        impl = value._impl
        found = self._exact.get(id(impl))
        if found is not None:
            return View(True, found, (), (), 0, impl.requires_grad, is_whole=True)
        base = _history_base(value)
        if base is not None and id(base._impl) in self._exact:
            return self._view(value, base, True, self._exact[id(base._impl)])
        primal = self._primal_of.get(id(impl.storage))
        if primal is not None and not impl.requires_grad:
            return self._view(value, self.primals[primal], True, primal)
        root = self._roots.get(id(impl.storage))
        if root is None or root._impl is impl or (impl.requires_grad and (base is None or base._impl is not root._impl)):
            return Computed(self._compute(value))
        return self._view(value, root, False, self._compute(root))

    def _compute(self, value: Tensor | SymInt) -> int:
        """Return the index of the graph's output that holds a tensor or a size; add the output if there is none."""
        key = value.expr if type(value) is SymInt else id(value._impl)
        found = self._position.get(key)
        if found is None:
            found = self._position[key] = len(self.plan_of.computed)
            self.plan_of.computed.append(value)
        return found

    def _plan_number(self, value: SymInt | int) -> Computed | int:
        known = value.environment.integer(value.expr) if type(value) is SymInt else value
        return Computed(self._compute(known)) if type(known) is SymInt else known

    def _view(self, value: Tensor, base: Tensor, of_primal: bool, position: int) -> View:
        impl, whole = value._impl, base._impl
        if impl.dtype is not whole.dtype:
            raise Untraceable(f"a result shows memory of dtype {whole.dtype} as {impl.dtype}")
        if impl.requires_grad and has_internal_overlap(whole.sizes, whole.strides):
            raise Untraceable("a result is a view of an input that has several elements in one place")
        offset = self._plan_number(impl.storage_offset - whole.storage_offset)
        size, stride = tuple(map(self._plan_number, impl.sizes)), tuple(map(self._plan_number, impl.strides))
        turned = (impl.key_set ^ whole.key_set) & LAZY_BITS
        return View(of_primal, position, size, stride, offset, impl.requires_grad, turned=turned)


def _history_base(value: Tensor) -> Tensor | None:
    """Return the base of a tensor according to autograd, if a view made by `as_strided` would have the same history."""
    view = value._impl.view
    return view.base if view is not None and not view.origin and value._impl.requires_grad else None


def _roots_of_shared_memory(tensors: list[Tensor]) -> dict[int, Tensor]:
    """For each storage that several results share, return the tensor that the others are views of."""
    groups: dict[int, list[Tensor]] = {}
    for value in tensors:
        groups.setdefault(id(value._impl.storage), []).append(value)
    roots = {}
    for key, members in groups.items():
        if len({id(value._impl) for value in members}) > 1:
            bases = [base for base in map(_history_base, members) if base is not None]
            owners = [value for value in members if value._impl.view is None]
            roots[key] = (bases or owners or members)[0]
    return roots
