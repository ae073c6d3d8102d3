// The machine instructions of one kernel.

import { useMemo } from "preact/hooks";
import { Code } from "../code/code";
import type { KernelEntry } from "../indices";

export function AssemblyOf({ entry }: { entry: KernelEntry }) {
  const text = entry.kernel.assembly;
  const blocks = useMemo(
    () => [{ first: 1, last: text.split("\n").length, places: entry.kernel.places, kernel: entry }],
    [entry],
  );
  return (
    <div class="assembly">
      <div class="caption">
        {entry.kernel.name} <span class="faint">assembly</span>
      </div>
      <Code text={text} language="assembly" blocks={blocks} label={`Assembly of ${entry.kernel.name}`} />
    </div>
  );
}
