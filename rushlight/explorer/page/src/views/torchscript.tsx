// A method of TorchScript, from source to C++, and its run on the stack machine.

import { Empty } from "../parts/small";
import { StageView } from "../parts/stage";
import { stopAt } from "../parts/strip";
import { UnitFrame } from "../parts/unit_frame";
import { index, unit } from "../state";
import { Stepper } from "./stepper";

export function TorchScript() {
  const found = unit.value;
  if (!found) {
    return (
      <Empty title="No TorchScript was run">
        Call a function or a module made by <code>torch.jit.script</code>, <code>torch.jit.trace</code> or{" "}
        <code>torch.jit.load</code> while recording.
      </Empty>
    );
  }
  const stop = stopAt(found);
  const entry = stop?.stage === null || stop?.stage === undefined ? undefined : index.value!.stages.get(stop.stage);
  return (
    <UnitFrame found={found}>
      {entry ? (
        <StageView entry={entry} />
      ) : found.steps ? (
        <Stepper key={found.id} steps={found.steps} />
      ) : (
        <Empty title="Nothing was recorded of this method">{found.why}</Empty>
      )}
    </UnitFrame>
  );
}
