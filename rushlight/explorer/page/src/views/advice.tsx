// Advice on where to look: breaks, recompiles and the slowest kernels.

import * as format from "../format";
import type { Index } from "../indices";
import { Bar, Empty, Panel, PlaceLink, Places } from "../parts/small";
import { openKernel } from "../parts/open_kernel";
import type { Break, Unit } from "../recording";
import { go } from "../state";

const MAX_ENTRIES = 5; // shown of each kind

interface Found {
  unit: Unit;
  each: Break;
  times: number;
}

/** Merge breaks at the same place with the same reason. */
export function distinctBreaks(units: Unit[]): Found[] {
  const found = new Map<string, Found>();
  for (const unit of units) {
    for (const each of unit.breaks) {
      const key = `${each.reason} ${each.places.at(-1)}`;
      const before = found.get(key);
      if (before) before.times++;
      else found.set(key, { unit, each, times: 1 });
    }
  }
  return [...found.values()];
}

export function WhereToLook({ found }: { found: Index }) {
  const { units } = found.recording;
  const breaks = distinctBreaks(units);
  const again = units.filter((unit) => unit.recompile);
  const kernels = [...found.kernels]
    .sort((a, b) => b.kernel.seconds - a.kernel.seconds)
    .filter(({ kernel }) => kernel.seconds > 0);
  return (
    <Panel title="Where to look">
      <ul class="advice">
        {breaks.slice(0, MAX_ENTRIES).map(({ unit, each, times }, at) => (
          <li key={`b${at}`}>
            <span class="shape broken" />
            <div>
              <b>{each.reason}</b> {times > 1 && <span class="tag">{times} times</span>}{" "}
              {each.places.length > 0 && <PlaceLink place={each.places[each.places.length - 1]!} />}
              {each.hint && <p>{each.hint}</p>}
              <button class="link" onClick={() => go({ view: "Capture", unit: unit.id })}>
                break in {unit.name}
              </button>
            </div>
          </li>
        ))}
        {breaks.length > MAX_ENTRIES && (
          <li class="faint">
            <span />
            {breaks.length - MAX_ENTRIES} more breaks, in the view Capture of each unit
          </li>
        )}
        {again.slice(0, MAX_ENTRIES).map((unit) => (
          <li key={`r${unit.id}`}>
            <span class="shape recompiled" />
            <div>
              <b>{unit.name} was compiled again</b>
              {unit.recompile!.failed.slice(0, 2).map((failed) => (
                <p key={failed}>
                  <code>{failed}</code>
                </p>
              ))}
              <button class="link" onClick={() => go({ view: "Capture", unit: unit.id })}>
                recompile of {unit.name}
              </button>
            </div>
          </li>
        ))}
        {again.length > MAX_ENTRIES && (
          <li class="faint">
            <span />
            {again.length - MAX_ENTRIES} more recompiles
          </li>
        )}
        {kernels.slice(0, MAX_ENTRIES).map((entry) => (
          <li key={`k${entry.unit.id} ${entry.index}`}>
            <Bar share={entry.kernel.seconds / found.kernelSeconds} />
            <div>
              <button class="link" onClick={() => openKernel(entry)}>
                {entry.kernel.name}
              </button>{" "}
              <span class="faint">{entry.kernel.graph}</span> {format.percent(entry.kernel.seconds / found.kernelSeconds)} of
              kernel time, {format.seconds(entry.kernel.seconds)}
              {entry.kernel.share > 0 && `, ${format.shareOfBest(entry.kernel.share)} of the machine's best`}
              <p class="operators">
                {entry.kernel.operators.join(", ")} <Places places={entry.kernel.places} />
              </p>
            </div>
          </li>
        ))}
      </ul>
      {!breaks.length && !again.length && !kernels.length && (
        <Empty title="Nothing stands out">No break, no recompile; and no kernel was timed.</Empty>
      )}
    </Panel>
  );
}
