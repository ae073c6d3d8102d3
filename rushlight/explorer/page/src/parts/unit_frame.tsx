// The head of every view of a unit: the choice of the unit, and its stages.

import type { ComponentChildren } from "preact";
import type { Unit } from "../recording";
import { go, index, route } from "../state";
import { Strip } from "./strip";

export function UnitFrame({ found, children }: { found: Unit; children: ComponentChildren }) {
  return (
    <div class="unit-frame">
      <div class="unit-bar">
        <Strip found={found}>
          <UnitChoice found={found} />
        </Strip>
      </div>
      <div class="unit-body">{children}</div>
    </div>
  );
}

function UnitChoice({ found }: { found: Unit }) {
  const units = index.value!.recording.units.filter((unit) => unit.kind === found.kind);
  const choose = (event: Event) =>
    go({ view: route.peek().view, unit: Number((event.currentTarget as HTMLSelectElement).value) });
  return (
    <select class="unit-choice" aria-label="Compiled unit" value={String(found.id)} onChange={choose}>
      {units.map((unit, at) => (
        <option key={unit.id} value={String(unit.id)}>
          {at + 1}. {unit.name}
          {unit.recompile ? " (again)" : ""} · {unit.breaks.length ? "broken" : unit.status}
        </option>
      ))}
    </select>
  );
}
