// The time of kernels, summed by their origin: line, module or graph.

import { type Index, type KernelEntry, placeName } from "../indices";
import type { Place } from "../recording";

export interface Sum {
  name: string;
  place: Place | null;
  places: Place[];
  kernels: number;
  seconds: number;
}

export function byLine(index: Index): Sum[] {
  return sorted(
    [...index.seconds].map(([place, seconds]) => ({
      name: placeName(index.recording, place),
      place,
      places: [place],
      kernels: index.kernelsOfPlace.get(place)?.length ?? 0,
      seconds,
    })),
  );
}

export function byGraph(index: Index): Sum[] {
  const sums = new Sums();
  for (const entry of index.kernels) sums.add(`${entry.unit.name} ${entry.kernel.graph}`, entry, 1);
  return sorted(sums.list());
}

/** Divide a kernel's time among modules by its number of nodes in each; a share also counts for enclosing modules. */
export function byModule(index: Index): Sum[] {
  const sums = new Sums();
  const paths = new Map<KernelEntry, string[][]>();
  for (const { stage, kernelOfNode } of index.stages.values()) {
    stage.graph?.nodes.forEach((node, at) => {
      const entry = kernelOfNode[at];
      if (!entry || !node.path.length) return;
      const list = paths.get(entry);
      if (list) list.push(node.path);
      else paths.set(entry, [node.path]);
    });
  }
  for (const [entry, list] of paths)
    for (const path of list) for (const name of new Set(path)) sums.add(name, entry, 1 / list.length);
  return sorted(sums.list());
}

class Sums {
  private readonly found = new Map<string, Sum & { entries: Set<KernelEntry> }>();

  add(name: string, entry: KernelEntry, part: number): void {
    let sum = this.found.get(name);
    if (!sum) this.found.set(name, (sum = { name, place: null, places: [], kernels: 0, seconds: 0, entries: new Set() }));
    sum.seconds += entry.kernel.seconds * part;
    sum.entries.add(entry);
  }

  list(): Sum[] {
    return [...this.found.values()].map(({ entries, ...sum }) => ({
      ...sum,
      kernels: entries.size,
      places: [...new Set([...entries].flatMap((entry) => entry.kernel.places))],
    }));
  }
}

function sorted(sums: Sum[]): Sum[] {
  return sums.sort((a, b) => b.seconds - a.seconds);
}
