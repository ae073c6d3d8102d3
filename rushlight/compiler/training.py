"""From dynamo's graph to a forward and a backward graph of aten operators, and to what runs both.

In: a GraphModule of library calls whose results are to be differentiated. Out: a callable over the same inputs whose results
have a history. Stage: between dynamo and inductor, by way of aot.
"""

from __future__ import annotations

from rushlight.aot.errors import Untraceable
from rushlight.aot.joint import Joint, ProgramRunner, trace_joint
from rushlight.aot.partition import Partition, default_partition, min_cut_partition
from rushlight.aot.training import CompiledTraining, plan_run
from rushlight.compiler.aten import AtenGraph, Made
from rushlight.compiler.passes import check, depends_on_placement
from rushlight.core.tensor import Tensor
from rushlight.dynamo.regions import disable


class TrainingGraph(AtenGraph):
    """Runs a module whose gradients are needed: a forward graph, and a backward graph in the history of its results.

    Parameters are inputs of both, so that an optimizer's steps leave what was compiled as it is.
    """

    def _make(self, inputs: list[Tensor]) -> Made:
        self.log("graph", lambda: self.module.print_readable(print_output=False))
        joint = trace_joint(self.module, inputs, self._attributes, self.opened)
        for graph_pass in self.passes():
            graph_pass(joint.module)
        reason = joint.module.meta.get("keep_eager")
        if reason:
            raise Untraceable(reason)
        self.log("joint", lambda: joint.module.print_readable(print_output=False))
        parts = self._partition(joint)
        plan = plan_run(joint, parts)
        forward, backward = self.build(parts.forward, inputs), self.build(parts.backward, inputs)
        attributes = tuple(self._attributes.values())
        program = disable(self._run_as_captured)  # a backward may run in a compiled function
        training = CompiledTraining(plan, forward, backward, program, lambda text: self.log("graph_breaks", lambda: text))
        run = (lambda *tensors: training(*tensors, *attributes)) if attributes else training
        return Made(run, depends_on_placement(joint.module), False)

    def _run_as_captured(self, *primals: Tensor | int) -> tuple:
        count = len(primals) - len(self._attributes)
        held = dict(zip(self._attributes, primals[count:], strict=True))
        return ProgramRunner(self.module, held).run(*primals[:count])

    def _partition(self, joint: Joint) -> Partition:
        settings = self.log.settings
        if settings.partitioner == "default":
            parts = default_partition(joint)
        else:
            parts = min_cut_partition(joint, settings.memory_budget)
        for module in (parts.forward, parts.backward):
            check(module)
            self.log("partition", lambda module=module: module.print_readable(print_output=False))
        return parts
