import { batch } from "@preact/signals";
import type { KernelEntry } from "../indices";
import { markOf, pinned } from "../marks";
import { go } from "../state";

/** Show a kernel among those of its unit, pinned. */
export function openKernel(entry: KernelEntry): void {
  batch(() => {
    go({ view: entry.unit.kind === "script" ? "TorchScript" : "Inductor", unit: entry.unit.id, panel: "kernels" });
    pinned.value = markOf([], entry);
  });
}
