// Facts about units and recordings that several views name.

import * as format from "../format";
import type { GraphRuns, Recording, Unit } from "../recording";

export function graphCount(unit: Unit): number {
  const graphs = new Set(unit.kernels.map((kernel) => kernel.graph));
  const drawn = unit.stages.filter((stage) => stage.view === "Graphs" && stage.graph).length;
  return graphs.size || Math.min(drawn, 1);
}

export function kernelSeconds(unit: Unit): number {
  return unit.kernels.reduce((sum, kernel) => sum + kernel.seconds, 0);
}

const SENTENCES: Record<string, string> = {
  compiled: "Compiled",
  kept: "Found in the cache of earlier compiles",
  eager: "Runs as plain Python",
  interpreted: "Interpreted as TorchScript",
};

/** One sentence: "Compiled in 1.2 s: 2 graphs, 1 break, 5 kernels." */
export function sentence(unit: Unit): string {
  const status = SENTENCES[unit.status] ?? unit.status;
  if (unit.status === "eager") return `${status}${unit.why ? `: ${unit.why}` : ""}.`;
  const took = unit.seconds > 0 ? ` in ${format.seconds(unit.seconds)}` : "";
  const facts = [
    unit.kind === "capture" && format.count(graphCount(unit), "graph"),
    unit.breaks.length > 0 && format.count(unit.breaks.length, "break"),
    unit.kernels.length > 0 && format.count(unit.kernels.length, "kernel"),
  ].filter(Boolean);
  return `${status}${took}${facts.length ? `: ${facts.join(", ")}` : ""}${unit.why ? ` (${unit.why})` : ""}.`;
}

/** The graph on whose runs most time was spent. */
export function longestRuns({ runs }: Recording): GraphRuns | null {
  return runs.reduce<GraphRuns | null>((most, each) => (most && most.seconds >= each.seconds ? most : each), null);
}

export function runCount({ runs }: Recording): number {
  return runs.reduce((sum, each) => sum + each.calls, 0);
}
