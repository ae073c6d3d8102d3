// The mark: the line, node or kernel under the pointer, or the pinned one, and what has to do with it.

import { computed, signal } from "@preact/signals";
import { append, type Block, type Index, type KernelEntry } from "./indices";
import type { Place, Unit } from "./recording";

export interface Mark {
  places: Set<Place>;
  /** Set where it is more precise than the lines: one kernel of many that a line became. */
  kernel: KernelEntry | null;
}

/** 0: nothing to do with the mark. 1: shares a line with it. 2: is it, or came from it. */
export type Level = 0 | 1 | 2;

export const hovered = signal<Mark | null>(null);
export const pinned = signal<Mark | null>(null);
export const mark = computed(() => hovered.value ?? pinned.value);

export function markOf(places: Iterable<Place>, kernel: KernelEntry | null = null): Mark | null {
  const all = new Set(kernel ? kernel.kernel.places : []);
  for (const place of places) all.add(place);
  return all.size || kernel ? { places: all, kernel } : null;
}

export function hover(next: Mark | null): void {
  if (!sameMark(hovered.peek(), next)) hovered.value = next;
}

/** Pin a mark, or let go of it where it is pinned already. */
export function togglePin(next: Mark | null): void {
  pinned.value = sameMark(pinned.peek(), next) ? null : next;
}

export function levelOf(current: Mark | null, places: Place[], kernel: KernelEntry | null): Level {
  if (!current) return 0;
  if (current.kernel && current.kernel === kernel) return 2;
  if (!places.some((place) => current.places.has(place))) return 0;
  return current.kernel && kernel ? 1 : 2;
}

/** The level of each block of a text. */
export function levelsOf(current: Mark | null, blocks: Block[]): Uint8Array {
  const levels = new Uint8Array(blocks.length);
  if (current) blocks.forEach((block, at) => (levels[at] = levelOf(current, block.places, block.kernel)));
  return levels;
}

/** The number of lines that a mark has in each stage of a unit. */
export function linesByStage(index: Index, unit: Unit, current: Mark | null): Map<number, number> {
  const counts = new Map<number, number>();
  if (!current) return counts;
  const touched = touchesOf(index);
  for (const stage of unit.stages) {
    const blocks = new Set<Block>();
    for (const place of current.places) for (const block of touched.get(stage.id)?.get(place) ?? []) blocks.add(block);
    let lines = 0;
    for (const block of blocks) if (levelOf(current, block.places, block.kernel) === 2) lines += block.last - block.first + 1;
    if (lines) counts.set(stage.id, lines);
  }
  return counts;
}

type Touches = Map<number, Map<Place, Block[]>>;
const touches = new WeakMap<Index, Touches>();

function touchesOf(index: Index): Touches {
  let made = touches.get(index);
  if (made) return made;
  made = new Map();
  for (const [id, entry] of index.stages) {
    const byPlace = new Map<Place, Block[]>();
    for (const block of entry.blocks) for (const place of block.places) append(byPlace, place, block);
    made.set(id, byPlace);
  }
  touches.set(index, made);
  return made;
}

/** The kernels that a mark is about. */
export function kernelsOf(index: Index, current: Mark): KernelEntry[] {
  if (current.kernel) return [current.kernel];
  const found = new Set<KernelEntry>();
  for (const place of current.places) for (const entry of index.kernelsOfPlace.get(place) ?? []) found.add(entry);
  return [...found];
}

function sameMark(a: Mark | null, b: Mark | null): boolean {
  if (!a || !b) return a === b;
  return a.kernel === b.kernel && a.places.size === b.places.size && [...a.places].every((place) => b.places.has(place));
}
