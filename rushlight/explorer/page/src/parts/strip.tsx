// The stages of the shown unit, in order. The stages that the mark reaches light up.

import { computed } from "@preact/signals";
import type { ComponentChildren } from "preact";
import { type Touched, kernelsOf, mark, touchedStages } from "../marks";
import type { StageEntry } from "../indices";
import type { Stage, Unit } from "../recording";
import { levelClass } from "./small";
import { type View, go, goToStage, index, route, unit, viewOf } from "../state";

export interface Stop {
  view: View;
  title: string;
  hint: string;
  stage: number | null;
  panel: string;
}

/** The stops of the keys `[` and `]`: stages, and other panels. */
export function stopsOf(found: Unit): Stop[] {
  const stages = (view: View) =>
    found.stages.filter((stage) => viewOf(found, stage) === view).map((stage) => stageStop(view, stage));
  const panel = (view: View, name: string, title: string, there: boolean): Stop[] =>
    there ? [{ view, title, hint: title, stage: null, panel: name }] : [];
  const kernels = found.kernels.length > 0;
  if (found.kind === "script") {
    return [
      ...stages("TorchScript"),
      ...panel("TorchScript", "kernels", "kernels", kernels),
      ...panel("TorchScript", "steps", "steps", found.steps !== null),
    ];
  }
  return [
    ...panel("Capture", "", "summary", true),
    ...stages("Capture"),
    ...stages("Graphs"),
    ...panel("Inductor", "kernels", "kernels", kernels),
    ...panel("Inductor", "memory", "memory chart", found.memory.length > 0),
    ...stages("Inductor"),
  ];
}

function stageStop(view: View, { id, stage, title }: Stage): Stop {
  return { view, title: shortTitle(stage, title), hint: title, stage: id, panel: "" };
}

function shortTitle(stage: string, title: string): string {
  return title.length <= 22 ? title : `${stage}: ${title.slice(0, 14)}…`;
}

/** A view's first stop, and the shown stop. */
export function stopAt(found: Unit): Stop | null {
  const { view, stage, panel } = route.value;
  const own = stopsOf(found).filter((stop) => stop.view === view);
  return own.find((stop) => (stage !== null ? stop.stage === stage : panel !== "" && stop.panel === panel)) ?? own[0] ?? null;
}

/** The shown stage; null if the view shows something else. */
export function stageAt(found: Unit): StageEntry | null {
  const stage = stopAt(found)?.stage ?? null;
  return stage === null ? null : (index.value!.stages.get(stage) ?? null);
}

export function goToStop(stop: Stop): void {
  if (stop.stage !== null) goToStage(stop.stage);
  else go({ view: stop.view, unit: unit.peek()?.id ?? null, stage: null, panel: stop.panel });
}

/** Go to the stage before or after the shown one. */
export function stepStage(by: 1 | -1): void {
  const found = unit.peek();
  if (!found) return;
  const stops = stopsOf(found);
  const at = stopAt(found);
  const here = stops.findIndex((stop) => at && stop.stage === at.stage && stop.panel === at.panel && stop.view === at.view);
  const next = stops[here + by];
  if (next) goToStop(next);
}

const marked = computed(() => (unit.value ? touchedStages(index.value!, unit.value, mark.value) : new Map<number, Touched>()));

const NOTHING: Touched = { level: 0, lines: 0 };

const markedKernels = computed((): Touched => {
  const found = mark.value ? kernelsOf(index.value!, mark.value) : [];
  const own = found.filter((entry) => entry.unit === unit.value).length;
  return own ? { level: 2, lines: own } : NOTHING;
});

function touchedBy(stop: Stop): Touched {
  if (stop.panel === "kernels") return markedKernels.value;
  return (stop.stage !== null && marked.value.get(stop.stage)) || NOTHING;
}

export function Strip({ found, children }: { found: Unit; children: ComponentChildren }) {
  const stops = stopsOf(found);
  const at = stopAt(found);
  return (
    <nav class="strip" aria-label="Stages">
      {children}
      {stops.map((stop, place) => (
        <StopButton
          key={`${stop.view} ${stop.stage} ${stop.panel}`}
          stop={stop}
          begins={stops[place - 1]?.view !== stop.view}
          shown={at !== null && at.stage === stop.stage && at.panel === stop.panel && at.view === stop.view}
        />
      ))}
    </nav>
  );
}

function StopButton({ stop, begins, shown }: { stop: Stop; begins: boolean; shown: boolean }) {
  const { level, lines } = touchedBy(stop);
  return (
    <>
      {begins && <span class="strip-view">{stop.view}</span>}
      <button
        class={levelClass(level)}
        aria-current={shown ? "step" : undefined}
        title={stop.hint}
        onClick={() => goToStop(stop)}
      >
        {stop.title}
        {lines > 0 && <b>{lines}</b>}
      </button>
    </>
  );
}
