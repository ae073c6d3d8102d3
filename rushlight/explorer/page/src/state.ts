// The page's state: the recordings, the position in them (which is also the address's hash), the theme.

import { batch, computed, effect, signal } from "@preact/signals";
import { type Index, fileOf, indexOf } from "./indices";
import { markOf, pinned } from "./marks";
import type { Recording, Stage, Unit } from "./recording";

export const VIEWS = ["Overview", "Capture", "Graphs", "Inductor", "Time", "TorchScript", "Eager", "Compare"] as const;
export type View = (typeof VIEWS)[number];

export interface Route {
  view: View;
  /** Ids of the unit and the stage; null means the view's first. */
  unit: number | null;
  stage: number | null;
  /** A part of a view that is not a stage: "kernels", "memory", "steps", … */
  panel: string;
}

export const recordings = signal<Recording[]>([]);
export const current = signal(0);
export const index = computed<Index | null>(() => {
  const recording = recordings.value[current.value];
  return recording ? indexed(recording) : null;
});
export const route = signal<Route>({ view: "Overview", unit: null, stage: null, panel: "" });
export const file = signal(0);
export const revealed = signal<{ stage: number; line: number } | null>(null);
export const dark = signal(matchMedia("(prefers-color-scheme: dark)").matches);
export const trouble = signal("");

const made = new WeakMap<Recording, Index>();

export function indexed(recording: Recording): Index {
  let found = made.get(recording);
  if (!found) made.set(recording, (found = indexOf(recording)));
  return found;
}

/** The shown unit: that of the route, or the first that the view can show. */
export const unit = computed<Unit | null>(() => {
  const { view, unit: id } = route.value;
  const units = index.value?.recording.units ?? [];
  const chosen = units.find((each) => each.id === id);
  const suits = (each: Unit) => (view === "TorchScript") === (each.kind === "script");
  if (chosen && (suits(chosen) || view === "Overview")) return chosen;
  const shows = (each: Unit) => suits(each) && each.stages.some((stage) => viewOf(each, stage) === view);
  return units.find(shows) ?? units.find(suits) ?? null;
});

export function go(change: Partial<Route>): void {
  const next = { ...route.peek(), ...change };
  if (change.view && change.stage === undefined) next.stage = null;
  if (change.view && change.panel === undefined) next.panel = "";
  route.value = next;
}

/** Show a stage, at a line of its text if one is given. */
export function goToStage(id: number, line?: number): void {
  const entry = index.peek()?.stages.get(id);
  if (!entry) return;
  batch(() => {
    go({ view: viewOf(entry.unit, entry.stage), unit: entry.unit.id, stage: id, panel: "" });
    revealed.value = line === undefined ? null : { stage: id, line };
  });
}

export function viewOf(unit: Unit, stage: Stage): View {
  if (unit.kind === "script") return "TorchScript";
  return VIEWS.find((view) => view === stage.view) ?? "Inductor";
}

export function showFile(at: number): void {
  if (index.peek()?.recording.files[at]) file.value = at;
}

/** Navigate by setting the address: `#/Inductor?unit=0&stage=12&file=0&mark=0:6,0:7`. */
export function readAddress(): void {
  const [path = "", query = ""] = location.hash.replace(/^#\/?/, "").split("?");
  const given = new URLSearchParams(query);
  const number = (name: string) => (given.get(name) === null ? null : Number(given.get(name)));
  batch(() => {
    const recording = number("recording");
    if (recording !== null && recordings.peek()[recording]) current.value = recording;
    route.value = {
      view: VIEWS.find((view) => view.toLowerCase() === decodeURIComponent(path).toLowerCase()) ?? "Overview",
      unit: number("unit"),
      stage: number("stage"),
      panel: given.get("panel") ?? "",
    };
    showFile(number("file") ?? file.peek());
    const places =
      given
        .get("mark")
        ?.split(",")
        .filter((place) => /^\d+:\d+$/.test(place)) ?? [];
    pinned.value = markOf(places, kernelAt(given.get("kernel")));
  });
}

function kernelAt(name: string | null) {
  return (name !== null && index.peek()?.kernels[Number(name)]) || null;
}

function address(): string {
  const given = new URLSearchParams();
  const { view, unit: unitId, stage, panel } = route.value;
  if (recordings.value.length > 1) given.set("recording", String(current.value));
  if (unitId !== null) given.set("unit", String(unitId));
  if (stage !== null) given.set("stage", String(stage));
  if (panel) given.set("panel", panel);
  if (file.value) given.set("file", String(file.value));
  const pin = pinned.value;
  if (pin?.kernel) given.set("kernel", String(index.value?.kernels.indexOf(pin.kernel)));
  else if (pin) given.set("mark", [...pin.places].slice(0, 50).join(","));
  const query = given.toString().replaceAll("%3A", ":").replaceAll("%2C", ",");
  return `#/${view}${query && `?${query}`}`;
}

/** Keep the address, the theme and the shown file in sync with the state. */
export function follow(): void {
  let first = true;
  effect(() => {
    const next = address();
    if (next !== location.hash && (!first || location.hash)) history.replaceState(null, "", next);
    first = false;
  });
  effect(() => {
    document.documentElement.dataset.theme = dark.value ? "dark" : "light";
  });
  effect(() => {
    const files = [...(pinned.value?.places ?? [])].map(fileOf);
    if (!files.length || files.includes(file.peek())) return;
    showFile(files.find((at) => index.peek()?.recording.files[at]?.own) ?? files[0]!);
  });
  addEventListener("hashchange", readAddress);
}
