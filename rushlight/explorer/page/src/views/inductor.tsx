// The way of a unit's graphs to C++: loops, fusion, memory and code, kernel by kernel.

import { computed, signal } from "@preact/signals";
import { useMemo } from "preact/hooks";
import type { KernelEntry, StageEntry } from "../indices";
import { kernelsOf, mark } from "../marks";
import { AssemblyOf } from "../parts/assembly";
import { Empty, Toggle } from "../parts/small";
import { StageView } from "../parts/stage";
import { stageAt, stopAt } from "../parts/strip";
import { UnitFrame } from "../parts/unit_frame";
import { index, unit } from "../state";
import { Kernels } from "./kernels";
import { MemoryPlans } from "./memory";

const assembly = signal(false);

export function Inductor() {
  const found = unit.value;
  if (!found) return <Empty title="No kernels">Call a function under torch.compile while recording.</Empty>;
  const stop = stopAt(found);
  const entry = stageAt(found);
  return (
    <UnitFrame found={found}>
      {entry ? (
        <InductorStage entry={entry} />
      ) : stop?.panel === "memory" ? (
        <MemoryPlans unit={found} />
      ) : stop?.panel === "kernels" ? (
        <Kernels unit={found} />
      ) : (
        <Empty title="No kernels in this unit">
          {found.status === "kept"
            ? "It was found in the cache. Record with RUSHLIGHT_KEEP_CAPTURES=0 to see it compiled."
            : found.why || "Nothing in it was compiled."}
        </Empty>
      )}
    </UnitFrame>
  );
}

function InductorStage({ entry }: { entry: StageEntry }) {
  const kernels = useMemo(() => kernelsIn(entry), [entry]);
  const compiled = kernels.some(({ kernel }) => kernel.assembly);
  const bar = compiled && (
    <Toggle on={assembly.value} onChange={(on) => (assembly.value = on)}>
      Assembly
    </Toggle>
  );
  return <StageView entry={entry} bar={bar} extra={compiled && assembly.value && <Assembly kernels={kernels} />} />;
}

function kernelsIn(entry: StageEntry): KernelEntry[] {
  return index.value!.kernels.filter(({ kernel }) => kernel.code?.[0] === entry.stage.id);
}

/** The assembly of the marked kernel; if the mark concerns none of these kernels, the last one stays. */
function Assembly({ kernels }: { kernels: KernelEntry[] }) {
  const shown = useMemo(() => {
    let last = kernels.find(({ kernel }) => kernel.assembly)!;
    return computed(() => {
      const marked = mark.value ? kernelsOf(index.value!, mark.value) : [];
      last = marked.find((entry) => entry.kernel.assembly && kernels.includes(entry)) ?? last;
      return last;
    });
  }, [kernels]);
  return <AssemblyOf entry={shown.value} />;
}
