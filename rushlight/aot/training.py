"""Run a partitioned program: the forward graph, and a node of the tape that runs the backward graph.

In: the callables that a backend made of the two graphs. Out: a callable over real tensors whose results have the same history
as in eager: gradients, hooks, versions of saved tensors, errors of a second backward. Stage: aot, at run time.
"""

from __future__ import annotations

import functools
import itertools
from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass
from typing import NamedTuple

from rushlight._C import give_histories, gradient_edges, keep_values, tensor_versions
from rushlight.aot.joint import Joint
from rushlight.aot.memory import storage_of
from rushlight.aot.partition import Partition, Saved
from rushlight.aot.results import Computed
from rushlight.aot.tangents import Numbers, Tangents, follow_tangents
from rushlight.autograd.backward import grad
from rushlight.autograd.grad_mode import enable_grad
from rushlight.autograd.node import Node
from rushlight.autograd.saved_tensor import FREED, SavedTensor
from rushlight.core.dispatch_key import AUTOGRAD_BITS
from rushlight.core.strides import elementwise_strides, is_non_overlapping_and_dense
from rushlight.core.symbolic import SymInt
from rushlight.core.tensor import Tensor, wrap
from rushlight.core.tensor_impl import TensorImpl, count_write
from rushlight.core.thread_state import state
from rushlight.ops.batching.kernel import example_of, of_examples
from rushlight.ops.batching.layout import all_levels, batch_sizes, is_batched
from rushlight.ops.packet import namespaces

aten = namespaces.namespace("aten")

KINDS = ("primal", "extra", "output")  # kinds of saved values, in the order in which csrc/compiled_history.c takes them
DOUBLE_BACKWARD = (
    "torch.compile with aot_autograd does not currently support double backward of a program that {reason}: the program cannot "
    "be run again for it. Leave this part out of the compiled function, or call backward() without create_graph=True."
)


class RunnablePart(NamedTuple):
    """A `BackwardPart` that a backend has built."""

    run: Callable
    saved: list[int]
    gradients: list[int]


@dataclass(frozen=True)
class Plan:
    """The facts about a joint graph and its partition that a run needs.

    `shared` are pairs of an extra value and an output in the same memory; `aliased` are outputs that equal a primal or an
    earlier output. `tangent_strides` and `saved_strides` are the strides of the backward's inputs; they have None for strides
    that depend on symbolic sizes. `again` says why the program cannot be run a second time; "" if it can.
    """

    joint: Joint
    saved: list[Saved]
    written: list[int]
    shared: list[tuple[int, int]]
    aliased: list[int]
    tangent_strides: list[tuple | None]
    saved_strides: list[tuple | None]
    tangents: Tangents
    again: str


def plan_run(joint: Joint, partition: Partition) -> Plan:
    """Compute what all runs share."""
    count, made = len(joint.results.computed), partition.forward.graph.output_node().args[0]
    tensors = [(position, node) for position, node in enumerate(made) if storage_of(node) is not None]
    outputs = {storage_of(node): position for position, node in tensors if position < count}
    shared = [
        (position - count, outputs[storage_of(node)])
        for position, node in tensors if position >= count and storage_of(node) in outputs
    ]  # fmt: skip
    aliased = [
        position for position, node in tensors
        if position < count and (node.op == "placeholder" or node in made[:position])
    ]  # fmt: skip
    tangents = joint.placeholders[len(joint.primals) :]
    again = "writes to its inputs" if partition.written else "returns views of values that it does not return"
    if not partition.written and not joint.results.hidden:
        impure = any(node.op == "call_function" and node.is_impure() for node in partition.forward.graph.nodes)
        again = "draws random numbers" if impure else ""
    given = [node for node in partition.backward.graph.nodes if node.op == "placeholder"][: len(partition.saved)]
    strides, saved_strides = ([_known_stride(node.meta["val"]) for node in nodes] for nodes in (tangents, given))
    return Plan(
        joint, partition.saved, partition.written, shared, aliased, strides, saved_strides, follow_tangents(partition), again
    )


def _known_stride(value: Tensor | SymInt) -> tuple[int, ...] | None:
    stride = value.stride() if isinstance(value, Tensor) else (value,)
    return None if any(type(step) is SymInt for step in stride) else stride


def _alias(tensor: Tensor) -> Tensor:
    """Return an alias with the same version counter, without history."""
    impl = tensor._impl
    return wrap(impl.alias(impl.sizes, impl.strides, impl.storage_offset))


def _without_autograd(run: Callable[..., tuple], values: Sequence[Tensor | int]) -> tuple:
    """Call `run` below autograd, so that no operator is recorded."""
    before = state.exclude
    state.exclude = before | AUTOGRAD_BITS
    try:
        return tuple(run(*values))
    finally:
        state.exclude = before


def _strides_like(impl: TensorImpl) -> tuple[int, ...]:
    """Return the strides of `empty_like`."""
    if is_non_overlapping_and_dense(impl.sizes, impl.strides):
        return impl.strides
    return elementwise_strides(impl.sizes, [(impl.sizes, impl.strides)])


class CompiledTraining:
    """Runs the compiled forward; its results have a `CompiledFunctionBackward` in their history.

    `part` makes the backward of some tangents alone, when it is needed. `program` is the program as captured: it runs for
    gradients that are to be differentiated again, and `say` is called once to tell that.
    """

    def __init__(
        self, plan: Plan, forward: Callable, backward: Callable, part: Callable[[Numbers], RunnablePart], program: Callable,
        say: Callable[[str], None],
    ):  # fmt: skip
        self.plan = plan
        self.forward = forward
        self.backward = backward
        self.part = functools.cache(part)
        self.program = program
        self.say: Callable[[str], None] | None = say
        self._count = len(plan.joint.results.computed)
        self._differentiated = tuple(plan.joint.differentiated)
        self._tangents = tuple(plan.joint.tangents)
        self._places = tuple((KINDS.index(place.kind), place.position) for place in plan.saved)
        self._as_computed = plan.joint.results.results == [Computed(position) for position in range(self._count)]

    def __call__(self, *primals: Tensor | int) -> tuple:
        """Return the program's results for its inputs and parameters."""
        node = CompiledFunctionBackward(self, primals)
        made = _without_autograd(self.forward, primals)
        for position in self.plan.written:
            count_write(primals[position]._impl)
        computed, extras = list(made[: self._count]), made[self._count :]
        for position in self.plan.aliased:
            computed[position] = _alias(computed[position])
        for extra, output in self.plan.shared:
            extras[extra]._impl.version = computed[output]._impl.version
        node.keep(computed, extras)
        return tuple(computed) if self._as_computed else self.plan.joint.results.rebuild(computed, primals)

    def announce_program(self) -> None:
        """Tell, the first time, that the program as captured runs for a gradient."""
        say, self.say = self.say, None
        if say is not None:
            say("its gradient is to be differentiated again: the program runs once more for that, as captured, in eager")


class CompiledFunctionBackward(Node):
    """The node of one run of a compiled program: it computes the gradients of all inputs from those of all outputs at once.

    If results are differentiated one after the other, it runs several times. `arrived` are the indices of the tangents of the
    last run, `spent` those whose saved values have been freed. A saved value that no other tangent reads is then None.
    """

    def __init__(self, owner: CompiledTraining, primals: tuple[Tensor | int, ...]):
        super().__init__()
        self.owner = owner
        self.primals: tuple[Tensor | int, ...] | None = primals
        self.versions = tensor_versions(primals)
        self.saved: list[SavedTensor | int | None] | None = []
        self.spent: frozenset[int] = frozenset()
        self.arrived: frozenset[int] = frozenset()
        self.strides = owner.plan.tangent_strides
        self.next_functions = gradient_edges(primals, owner._differentiated)

    def keep(self, computed: Sequence[Tensor], extras: Sequence[Tensor]) -> None:
        """Give the outputs their history, and save what the backward reads."""
        give_histories(self, computed, self.owner._tangents)
        if None in self.strides:
            self.strides = [
                stride or _strides_like(computed[position]._impl)
                for stride, position in zip(self.strides, self.owner._tangents, strict=True)
            ]  # fmt: skip
        self.saved = keep_values(self.owner._places, self.primals, extras, computed)

    @property
    def saved_tensors(self) -> tuple[Tensor, ...]:
        """The tensors that the backward reads; RuntimeError once they are freed."""
        if self.saved is None:
            raise RuntimeError(FREED)
        return tuple([value.unpack(self) for value in self.saved if isinstance(value, SavedTensor)])

    def apply(self, grads: tuple[Tensor | None, ...]) -> tuple[Tensor | None, ...]:
        self.arrived = frozenset(number for number, grad in enumerate(grads) if grad is not None)
        if self.saved is None or self.arrived & self.spent:
            raise RuntimeError(FREED)
        if state.grad_enabled or state.dual_levels:
            return self._apply_recorded(grads)
        if state.batch_levels and any(map(is_batched, grads)):
            return self._apply_batched(grads)
        saved = self._values_read()
        is_linear = self.owner.plan.joint.is_linear or len(self.arrived) == len(grads)
        if not is_linear or any(value is None for value in saved):
            return self._apply_part(grads, saved)
        tangents = [self._tangent(grad, number) for number, grad in enumerate(grads)]
        found = _without_autograd(self.owner.backward, (*saved, *tangents))
        return found if len(self.arrived) == len(grads) else self._without_zeros(found)

    def _apply_part(self, grads: tuple[Tensor | None, ...], saved: list[Tensor | int | None]) -> tuple[Tensor | None, ...]:
        """Compute the gradients with a part of the backward: zeros cannot replace the missing tangents, or their saved values
        are gone."""
        part = self.owner.part(self.arrived)
        given = [saved[number] for number in part.saved]
        if any(value is None for value in given):
            raise RuntimeError(FREED)
        tangents = [self._tangent(grads[number], number) for number in sorted(self.arrived)]
        found = dict(zip(part.gradients, _without_autograd(part.run, (*given, *tangents)), strict=True))
        return tuple([found.get(number) for number in range(len(self.next_functions))])

    def _apply_batched(self, grads: tuple[Tensor | None, ...]) -> tuple[Tensor | None, ...]:
        """Compute the gradients example by example: compiled code can't read batched tensors."""
        levels = all_levels(*grads)
        sizes = batch_sizes(levels, *grads)
        if 0 in sizes:
            raise RuntimeError("vmap: a compiled function is differentiated example by example, and there are none")
        indices = itertools.product(*map(range, sizes))
        found = [self.apply(tuple(example_of(grads, levels, index))) for index in indices]
        columns = zip(*found, strict=True)
        return tuple([None if column[0] is None else of_examples(column, levels, sizes) for column in columns])

    def _values_read(self) -> list[Tensor | int | None]:
        """Return the saved values; None for those that no arrived tangent needs and that were freed or written to since."""
        if len(self.arrived) == len(self.output_info):
            return [
                value if type(value) is int
                else value.unpack(self) if value.unpack_hook is None
                else self._through_hook(number, value)
                for number, value in enumerate(self.saved)
            ]  # fmt: skip
        read = self._read_for(self.arrived)
        return [
            value if type(value) is int
            else self._through_hook(number, value) if number in read
            else self._find_unread_reason(number, value)
            for number, value in enumerate(self.saved)
        ]  # fmt: skip

    def _through_hook(self, number: int, value: SavedTensor) -> Tensor:
        """Unpack a saved value, in the strides that the backward was compiled for: hooks may return other strides."""
        found, stride = value.unpack(self), self.owner.plan.saved_strides[number]
        if value.unpack_hook is None or stride is None or found._impl.strides == stride:
            return found
        return aten.empty_strided(found._impl.sizes, stride, dtype=found.dtype, device=found.device).copy_(found)

    def _read_for(self, tangents: Iterable[int]) -> frozenset[int]:
        read = self.owner.plan.tangents.read
        return frozenset().union(*(read[number] for number in tangents))

    def _find_unread_reason(self, number: int, value: SavedTensor | None) -> Tensor | None:
        is_gone = value is None or (value.unpack_hook is None and value.tensor._impl.version.value != value.version)
        return None if is_gone else self._through_hook(number, value)

    def _without_zeros(self, found: tuple) -> tuple[Tensor | None, ...]:
        """Replace gradients that no tangent arrived for by None, as in eager."""
        pairs = zip(found, self.owner.plan.tangents.reached, strict=True)
        return tuple(value if not reached or reached & self.arrived else None for value, reached in pairs)

    def _tangent(self, grad: Tensor | None, number: int) -> Tensor:
        """Return a gradient with the strides that the backward was compiled for; zeros if it did not arrive."""
        stride = self.strides[number]
        sizes, kind, place = self.output_info[number]
        if grad is not None and grad._impl.strides == stride:
            return grad
        made = aten.empty_strided(sizes, stride, dtype=kind, device=place)
        return made.zero_() if grad is None else made.copy_(grad)

    def _apply_recorded(self, grads: tuple[Tensor | None, ...]) -> tuple[Tensor | None, ...]:
        """Compute gradients that can be differentiated again: run the program as captured once more, and differentiate that."""
        plan = self.owner.plan
        if plan.again:
            raise RuntimeError(DOUBLE_BACKWARD.format(reason=plan.again))
        primals = self.primals
        if self.versions != tensor_versions(primals):
            raise RuntimeError(DOUBLE_BACKWARD.format(reason="has inputs that were modified by an inplace operation since"))
        self.owner.announce_program()
        primals = list(primals)
        with enable_grad():
            # A primal may be computed from another; the alias ends the history there.
            for position in self.owner._differentiated:
                primals[position] = aten.alias(primals[position])
            results = self.owner.program(*primals)
        outputs = {result.position: value for result, value in zip(plan.joint.results.results, results, strict=True)
                   if isinstance(result, Computed)}  # fmt: skip
        pairs = [(outputs[position], given) for position, given in zip(self.owner._tangents, grads, strict=True)]
        pairs = [pair for pair in pairs if pair[1] is not None]
        wanted = [primals[position] for position in self.owner._differentiated]
        return grad([value for value, _ in pairs], wanted, [given for _, given in pairs], create_graph=True, allow_unused=True)

    def release(self) -> None:
        """Drop the saved values, except for results that may still be differentiated."""
        met = self.owner.plan.tangents.met
        self.spent = self.spent.union(*(met[number] for number in self.arrived))
        left = set(range(len(met))) - self.spent
        if not left or self.saved is None:
            self.saved = self.primals = None
            return
        read = self._read_for(left)
        self.saved = [
            None if number not in read and type(value) is SavedTensor and value.unpack_hook is None else value
            for number, value in enumerate(self.saved)
        ]
