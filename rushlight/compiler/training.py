"""Compiles training: dynamo's graph becomes a forward and a backward graph of aten operators.

In: a GraphModule of library calls whose results need gradients. Out: a callable over the same inputs whose results have an
autograd history. Stage: between dynamo and inductor, by way of aot.
"""

from __future__ import annotations

import functools

from rushlight.aot.errors import Untraceable
from rushlight.aot.joint import Joint, ProgramRunner, trace_joint
from rushlight.aot.partition import Partition, default_partition, min_cut_partition
from rushlight.aot.saved_images import keep_channels_last
from rushlight.aot.tangents import backward_of
from rushlight.aot.training import CompiledTraining, RunnablePart, plan_run
from rushlight.autograd.profiler import compile_stage
from rushlight.compiler.aten import AtenGraph, Made
from rushlight.compiler.passes import check, depends_on_placement
from rushlight.compiler.passes import run as run_passes
from rushlight.core.symbolic import UnguardedSizeError
from rushlight.core.tensor import Tensor
from rushlight.core.wrapper_subclasses import is_constant_of_graphs
from rushlight.dynamo.regions import disable
from rushlight.inductor.sizes import UnsupportedSize


class TrainingGraph(AtenGraph):
    """Runs a module that needs gradients: a forward graph, and a backward graph in the results' autograd history.

    Parameters are inputs of both, so that optimizer steps do not invalidate the compiled code.
    """

    def _capture_and_compile(self, inputs: list[Tensor]) -> Made:
        """Trace the joint graph, partition it, and compile forward and backward."""
        joint = trace_joint(self.module, inputs, self._lifted_attributes, self.opened)
        run_passes(self.passes(), joint.module, self.log)
        reason = joint.module.meta.get("keep_eager")
        if reason:
            raise Untraceable(reason)
        self.log.graph("joint", joint.module)
        parts = self._partition(joint)
        plan = plan_run(joint, parts)
        forward, backward = self.build(parts.forward, inputs), self.build(parts.backward, inputs)
        attributes = tuple(self._lifted_attributes.values())
        # Dynamo must not capture it again if the backward runs inside a compiled function.
        program = disable(self._run_as_captured)
        say = lambda text: self.log("graph_breaks", lambda: text)  # noqa: E731
        compile_subset = disable(lambda arrived: self._compile_subset(parts, arrived))
        training = CompiledTraining(plan, forward, backward, compile_subset, program, say)
        run = (lambda *tensors: training(*tensors, *attributes)) if attributes else training
        return Made(run, depends_on_placement(joint.module), False)

    @functools.cached_property
    def _lifted_attributes(self) -> dict[str, Tensor]:
        """Return the attributes that become inputs of both graphs."""
        return {name: value for name, value in self._attributes.items() if not is_constant_of_graphs(type(value))}

    def _compile_subset(self, parts: Partition, arrived: frozenset[int]) -> RunnablePart:
        """Compile a backward for only some results. It must not assume sizes that the capture did not."""
        part = backward_of(parts, arrived)
        check(part.module)
        part.module.meta["part"] = "backward of some results"
        self.log.graph("partition", part.module, part.module.meta["part"])
        try:
            run = self.build(part.module, [])
        except (UnsupportedSize, UnguardedSizeError):
            run = part.module.forward
        return RunnablePart(run, part.saved, part.gradients)

    def _run_as_captured(self, *primals: Tensor | int) -> tuple:
        """Run the captured module in eager, with the given parameters."""
        count = len(primals) - len(self._lifted_attributes)
        held = dict(zip(self._lifted_attributes, primals[count:], strict=True))
        return ProgramRunner(self.module, held).run(*primals[:count])

    @compile_stage("min_cut_rematerialization_partition")
    def _partition(self, joint: Joint) -> Partition:
        settings = self.log.settings
        if settings.partitioner == "default":
            parts = default_partition(joint)
        else:
            parts = min_cut_partition(joint, settings.memory_budget)
        keep_channels_last(parts, len(joint.results.computed))
        for name, module in (("forward", parts.forward), ("backward", parts.backward)):
            check(module)
            module.meta["part"] = name
            self.log.graph("partition", module, name)
        return parts
