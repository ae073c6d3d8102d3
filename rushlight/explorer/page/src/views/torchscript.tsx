// A method of TorchScript, from source to C++, and its run on the stack machine.

import { Empty } from "../parts/small";
import { StageView } from "../parts/stage";
import { stageAt, stopAt } from "../parts/strip";
import { UnitFrame } from "../parts/unit_frame";
import type { Unit } from "../recording";
import { unit } from "../state";
import { Kernels } from "./kernels";
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
  const entry = stageAt(found);
  return (
    <UnitFrame found={found}>{entry ? <StageView entry={entry} /> : <Panel unit={found} name={stop?.panel ?? ""} />}</UnitFrame>
  );
}

function Panel({ unit, name }: { unit: Unit; name: string }) {
  if (name === "kernels") return <Kernels unit={unit} />;
  if (unit.steps) return <Stepper key={unit.id} steps={unit.steps} />;
  return <Empty title="Nothing was recorded of this method">{unit.why}</Empty>;
}
