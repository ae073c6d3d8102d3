// The mark: the line, node or kernel under the pointer, or the pinned one, and everything related to it.

import { computed, signal } from "@preact/signals";
import { append, type Block, type Index, type KernelEntry } from "./indices";
import type { Place, Unit } from "./recording";

export interface Mark {
  places: Set<Place>;
  /** Set if it is more precise than the lines: one of several kernels that a line became. */
  kernel: KernelEntry | null;
}

/** The relation to the mark. 0: none. 1: shares a line with the mark. 2: is the mark, or derived from it. */
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

/** Pin a mark, or unpin it if it is pinned. */
export function togglePin(next: Mark | null): void {
  pinned.value = sameMark(pinned.peek(), next) ? null : next;
}

/** The level of an element that comes from these lines, and from this kernel if it is known. */
export function levelOf(current: Mark | null, places: Place[], kernel: KernelEntry | null): Level {
  if (!current) return 0;
  if (current.kernel && current.kernel === kernel) return 2;
  if (!hasAny(current, places)) return 0;
  return current.kernel ? 1 : 2;
}

/** The level of a line of the program. */
export function levelOfLines(current: Mark | null, places: Place[]): Level {
  return current && hasAny(current, places) ? 2 : 0;
}

function hasAny(current: Mark, places: Place[]): boolean {
  return places.some((place) => current.places.has(place));
}

/** The level of each block of a text, which is a stage's or the program's source. */
export function levelsOf(current: Mark | null, blocks: Block[], program = false): Uint8Array {
  const levels = new Uint8Array(blocks.length);
  if (!current) return levels;
  blocks.forEach((block, at) => {
    levels[at] = program ? levelOfLines(current, block.places) : levelOf(current, block.places, block.kernel);
  });
  return levels;
}

export interface Touched {
  level: Level;
  lines: number;
}

/** The level of the mark in each stage of a unit, and the number of marked lines. */
export function touchedStages(index: Index, unit: Unit, current: Mark | null): Map<number, Touched> {
  const counts = new Map<number, Touched>();
  if (!current) return counts;
  const touched = touchesOf(index);
  for (const stage of unit.stages) {
    const blocks = new Set<Block>();
    for (const place of current.places) for (const block of touched.get(stage.id)?.get(place) ?? []) blocks.add(block);
    const lines = [0, 0, 0];
    for (const block of blocks) lines[levelOf(current, block.places, block.kernel)]! += block.last - block.first + 1;
    if (lines[2] || lines[1]) counts.set(stage.id, lines[2] ? { level: 2, lines: lines[2] } : { level: 1, lines: lines[1]! });
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

/** The kernels that a mark concerns. */
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
