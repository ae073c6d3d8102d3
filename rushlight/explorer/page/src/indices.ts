// Indices over a recording: how its parts relate. They are built once, so that a mark needs only a few look-ups.

import type { GraphNode, Kernel, Place, Recording, SourceFile, Stage, Unit } from "./recording";

export type LineStatus = "captured" | "broken" | "untouched";

export interface KernelEntry {
  kernel: Kernel;
  unit: Unit;
  /** The kernel's index among those of its unit, and among those of its graph. */
  index: number;
  inGraph: number;
}

/** A part of a stage's text: a run of lines that share their places and their kernel. */
export interface Block {
  first: number;
  last: number;
  places: Place[];
  kernel: KernelEntry | null;
}

export interface StageEntry {
  stage: Stage;
  unit: Unit;
  blocks: Block[];
  lines: number;
  /** Nodes of the drawn graph, with the kernels that compute them. */
  kernelOfNode: (KernelEntry | null)[];
}

export interface Index {
  recording: Recording;
  units: Map<number, Unit>;
  stages: Map<number, StageEntry>;
  kernels: KernelEntry[];
  kernelsOfPlace: Map<Place, KernelEntry[]>;
  status: Map<Place, LineStatus>;
  /** Seconds in kernels by line: the time of a kernel is divided among its lines. */
  seconds: Map<Place, number>;
  kernelSeconds: number;
  largestLine: number;
  /** All lines of programs that some stage refers to. */
  places: Set<Place>;
  breakOfPlace: Map<Place, { unit: Unit; reason: string; hint: string }>;
}

export function indexOf(recording: Recording): Index {
  const index: Index = {
    recording,
    units: new Map(recording.units.map((unit) => [unit.id, unit])),
    stages: new Map(),
    kernels: [],
    kernelsOfPlace: new Map(),
    status: new Map(),
    seconds: new Map(),
    kernelSeconds: 0,
    largestLine: 0,
    places: new Set(),
    breakOfPlace: new Map(),
  };
  for (const unit of recording.units) {
    const kernels = addKernels(index, unit);
    for (const stage of unit.stages) index.stages.set(stage.id, stageEntry(unit, kernels, stage));
    addStatus(index, unit);
  }
  addPlaces(index);
  for (const seconds of index.seconds.values()) index.largestLine = Math.max(index.largestLine, seconds);
  return index;
}

function addKernels(index: Index, unit: Unit): KernelEntry[] {
  const inGraph = new Map<string, number>();
  return unit.kernels.map((kernel, at) => {
    const place = inGraph.get(kernel.graph) ?? 0;
    inGraph.set(kernel.graph, place + 1);
    const entry = { kernel, unit, index: at, inGraph: place };
    index.kernels.push(entry);
    index.kernelSeconds += kernel.seconds;
    for (const each of new Set(kernel.places)) {
      append(index.kernelsOfPlace, each, entry);
      index.seconds.set(each, (index.seconds.get(each) ?? 0) + kernel.seconds / kernel.places.length);
    }
    return entry;
  });
}

const RANKS: Record<LineStatus, number> = { untouched: 0, captured: 1, broken: 2 };

function addStatus(index: Index, unit: Unit): void {
  const mark = (places: Place[], status: LineStatus) => {
    for (const place of places) {
      const before = index.status.get(place);
      if (!before || RANKS[before] < RANKS[status]) index.status.set(place, status);
    }
  };
  mark(unit.untouched, "untouched");
  mark(unit.captured, "captured");
  mark(unit.broken, "broken");
  for (const each of unit.breaks) {
    const place = each.places[each.places.length - 1];
    if (place) index.breakOfPlace.set(place, { unit, reason: each.reason, hint: each.hint });
  }
}

function addPlaces(index: Index): void {
  const { eager, tapes } = index.recording;
  const add = (places: Place[]) => places.forEach((place) => index.places.add(place));
  for (const { blocks } of index.stages.values()) for (const block of blocks) add(block.places);
  for (const call of eager) add(call.places);
  for (const tape of tapes) for (const node of tape.nodes) add(node.places);
}

function stageEntry(unit: Unit, kernels: KernelEntry[], stage: Stage): StageEntry {
  const nodes = stage.graph?.nodes ?? [];
  const named = new Map<string, KernelEntry[]>();
  for (const entry of kernels) append(named, entry.kernel.name, entry);
  const kernelOfNode = nodes.map((node) => kernelNamed(named, node.kernel, stage.title));
  const blocks = stage.places.map(([first, last, places]): Block => ({ first, last, places, kernel: null }));
  linkCode(blocks, kernels, stage);
  if (stage.view === "Inductor") linkBuffers(blocks, kernels, stage);
  return { stage, unit, blocks: splitByNodes(blocks, nodes, kernelOfNode), lines: countLines(stage.text), kernelOfNode };
}

function kernelNamed(named: Map<string, KernelEntry[]>, name: string | null | undefined, graph: string): KernelEntry | null {
  const found = name ? named.get(name) : undefined;
  return found?.find((entry) => entry.kernel.graph === graph) ?? found?.[0] ?? null;
}

function linkCode(blocks: Block[], kernels: KernelEntry[], stage: Stage): void {
  const here = kernels.filter((entry) => entry.kernel.code?.[0] === stage.id);
  if (!here.length) return void blocks.sort((a, b) => a.first - b.first);
  const overlaps = (block: Block) => here.some(({ kernel: { code } }) => block.first <= code![2] && block.last >= code![1]);
  const others = blocks.filter((block) => !overlaps(block));
  const own = here.map((entry): Block => ({
    first: entry.kernel.code![1],
    last: entry.kernel.code![2],
    places: entry.kernel.places,
    kernel: entry,
  }));
  blocks.splice(0, blocks.length, ...others, ...own);
  blocks.sort((a, b) => a.first - b.first);
}

const BUFFER = /^\s*(?:\w+\(name='(\w+)'|(\w+):)/m;

/** Blocks that begin with a buffer (in loops and fusion groups) belong to the kernel that computes the buffer. */
function linkBuffers(blocks: Block[], kernels: KernelEntry[], stage: Stage): void {
  const calculated = new Map<string, KernelEntry[]>();
  for (const entry of kernels) for (const name of entry.kernel.buffers) append(calculated, name, entry);
  if (!calculated.size) return;
  const lines = stage.text.split("\n");
  for (const block of blocks) {
    const found = block.kernel ? null : BUFFER.exec(lines.slice(block.first - 1, block.last).join("\n"));
    const entries = (found && calculated.get(found[1] ?? found[2]!)) || [];
    block.kernel ??=
      entries.find(({ kernel }) => stage.title.includes(kernel.graph)) ?? (entries.length === 1 ? entries[0]! : null);
  }
}

/** The blocks, with separate blocks for the lines of nodes whose kernel is known. */
function splitByNodes(blocks: Block[], nodes: GraphNode[], kernels: (KernelEntry | null)[]): Block[] {
  const byLine = new Map<number, Block>();
  nodes.forEach((node, at) => {
    if (node.line === null || node.line === undefined) return;
    byLine.set(node.line, { first: node.line, last: node.line, places: node.places, kernel: kernels[at] ?? null });
  });
  const result: Block[] = [];
  for (const block of blocks) {
    let begin = block.first;
    for (let line = block.first; line <= block.last; line++) {
      const own = byLine.get(line);
      if (!own) continue;
      byLine.delete(line);
      if (begin < line) result.push({ ...block, first: begin, last: line - 1 });
      result.push(own.places.length ? own : { ...own, places: block.places });
      begin = line + 1;
    }
    if (begin <= block.last) result.push({ ...block, first: begin });
  }
  for (const own of byLine.values()) if (own.places.length) result.push(own);
  return result.sort((a, b) => a.first - b.first);
}

/** The block that a line of a stage's text is in. */
export function blockAt(blocks: Block[], line: number): Block | null {
  let low = 0;
  let high = blocks.length - 1;
  while (low <= high) {
    const middle = (low + high) >> 1;
    const block = blocks[middle]!;
    if (line < block.first) high = middle - 1;
    else if (line > block.last) low = middle + 1;
    else return block;
  }
  return null;
}

export function fileOf(place: Place): number {
  return Number.parseInt(place, 10);
}

export function lineOf(place: Place): number {
  return Number.parseInt(place.slice(place.indexOf(":") + 1), 10);
}

/** "attend.py:6". */
export function placeName(recording: Recording, place: Place): string {
  return `${recording.files[fileOf(place)]?.name ?? "?"}:${lineOf(place)}`;
}

const linesOfFile = new WeakMap<SourceFile, string[]>();

/** The text of a line of a program, without the space around it. */
export function lineText(recording: Recording, place: Place): string {
  const file = recording.files[fileOf(place)];
  if (!file) return "";
  let lines = linesOfFile.get(file);
  if (!lines) linesOfFile.set(file, (lines = file.text.split("\n")));
  return (lines[lineOf(place) - 1] ?? "").trim();
}

export function countLines(text: string): number {
  let count = 1;
  for (let at = text.indexOf("\n"); at >= 0; at = text.indexOf("\n", at + 1)) count++;
  return count;
}

export function append<K, V>(map: Map<K, V[]>, key: K, value: V): void {
  const list = map.get(key);
  if (list) list.push(value);
  else map.set(key, [value]);
}
