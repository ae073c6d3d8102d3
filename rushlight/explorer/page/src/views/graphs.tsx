// The graphs of a unit: as captured, joint with its gradient, partitioned, after each pass.

import { Empty } from "../parts/small";
import { StageView } from "../parts/stage";
import { stageAt } from "../parts/strip";
import { UnitFrame } from "../parts/unit_frame";
import { unit } from "../state";

export function Graphs() {
  const found = unit.value;
  if (!found) return <Empty title="No graphs">Call a function under torch.compile while recording.</Empty>;
  const entry = stageAt(found);
  return (
    <UnitFrame found={found}>
      {entry ? (
        <StageView entry={entry} />
      ) : (
        <Empty title="No graph in this unit">
          {found.why
            ? `It runs as Python: ${found.why}.`
            : "Nothing in it could be captured; its breaks are in the view Capture."}
        </Empty>
      )}
    </UnitFrame>
  );
}
