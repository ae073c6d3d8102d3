// The differences between two recordings.

import { type Index, type KernelEntry, append, lineText } from "../indices";
import type { Recording, Stage } from "../recording";
import { longestRuns, runCount } from "./facts";

export interface TextPair {
  group: string;
  title: string;
  language: Stage["language"];
  before: string;
  after: string;
  /** The stage of the second recording. */
  stage: number | null;
}

export interface KernelPair {
  before: KernelEntry | null;
  after: KernelEntry | null;
}

/** The pairs of texts that differ: files by name, and stages by unit, stage and title. */
export function textPairs(before: Recording, after: Recording): TextPair[] {
  return [...filePairs(before, after), ...stagePairs(before, after)].filter((pair) => pair.before !== pair.after);
}

function filePairs(before: Recording, after: Recording): TextPair[] {
  const pairs = pairByKey(before.files, after.files, (file) => file.name);
  return pairs.map(([a, b]) => ({
    group: "Files",
    title: (b ?? a)!.name,
    language: "python",
    before: a?.text ?? "",
    after: b?.text ?? "",
    stage: null,
  }));
}

function stagePairs(before: Recording, after: Recording): TextPair[] {
  const stages = (recording: Recording) => recording.units.flatMap((unit) => unit.stages.map((stage) => ({ unit, stage })));
  const pairs = pairByKey(stages(before), stages(after), ({ unit, stage }) => `${unit.name} ${stage.stage} ${stage.title}`);
  return pairs.map(([a, b]) => {
    const { unit, stage } = (b ?? a)!;
    return {
      group: stage.view,
      title: `${unit.name}: ${stage.title}`,
      language: stage.language,
      before: a?.stage.text ?? "",
      after: b?.stage.text ?? "",
      stage: b?.stage.id ?? null,
    };
  });
}

/** Pair kernels with the same operators and lines, then the remaining ones with the same operators. */
export function kernelPairs(before: Index, after: Index): KernelPair[] {
  const operators = ({ kernel, unit }: KernelEntry) => `${unit.name} ${kernel.graph} ${kernel.operators.join(" ")}`;
  const lines = (index: Index) => (entry: KernelEntry) =>
    `${operators(entry)} ${entry.kernel.places.map((place) => lineText(index.recording, place)).join(" ")}`;
  const pairs: KernelPair[] = [];
  const rest = match(before.kernels, after.kernels, lines(before), lines(after), pairs);
  const last = match(rest[0], rest[1], operators, operators, pairs);
  for (const each of last[0]) pairs.push({ before: each, after: null });
  for (const each of last[1]) pairs.push({ before: null, after: each });
  return pairs;
}

type Keys = (entry: KernelEntry) => string;

/** Add the pairs that have the same key; return the unmatched kernels of both. */
function match(
  before: KernelEntry[],
  after: KernelEntry[],
  keyBefore: Keys,
  keyAfter: Keys,
  pairs: KernelPair[],
): [KernelEntry[], KernelEntry[]] {
  const waiting = new Map<string, KernelEntry[]>();
  for (const each of after) append(waiting, keyAfter(each), each);
  const left: KernelEntry[] = [];
  for (const each of before) {
    const partner = waiting.get(keyBefore(each))?.shift();
    if (partner) pairs.push({ before: each, after: partner });
    else left.push(each);
  }
  const matched = new Set(pairs.map((pair) => pair.after));
  return [left, after.filter((each) => !matched.has(each))];
}

/** Pair the items of two lists by key: the n-th item of a key with the n-th. */
function pairByKey<T>(before: T[], after: T[], keyOf: (item: T) => string): [T | null, T | null][] {
  const numbered = (items: T[]) => {
    const counts = new Map<string, number>();
    return new Map(
      items.map((item) => {
        const key = keyOf(item);
        const number = counts.get(key) ?? 0;
        counts.set(key, number + 1);
        return [`${key}#${number}`, item] as const;
      }),
    );
  };
  const [first, second] = [numbered(before), numbered(after)];
  const keys = new Set([...first.keys(), ...second.keys()]);
  return [...keys].map((key) => [first.get(key) ?? null, second.get(key) ?? null]);
}

export interface Figure {
  title: string;
  before: number;
  after: number;
  unit: "seconds" | "count" | "bytes";
}

export function figures(before: Index, after: Index): Figure[] {
  const figure = (title: string, unit: Figure["unit"], of: (index: Index) => number): Figure => ({
    title,
    unit,
    before: of(before),
    after: of(after),
  });
  const sum = (numbers: number[]) => numbers.reduce((total, each) => total + each, 0);
  return [
    figure("A run of the longest graph (median)", "seconds", ({ recording }) => longestRuns(recording)?.median ?? 0),
    figure("Time in kernels for each run of a graph", "seconds", ({ kernelSeconds, recording }) =>
      kernelSeconds / Math.max(runCount(recording), 1),
    ),
    figure("Compiling", "seconds", ({ recording }) => sum(recording.units.map((unit) => unit.seconds))),
    figure("Kernels", "count", (index) => index.kernels.length),
    figure("Graph breaks", "count", ({ recording }) => sum(recording.units.map((unit) => unit.breaks.length))),
    figure("Compiled units", "count", ({ recording }) => recording.units.length),
    figure("Bytes moved by kernels", "bytes", (index) => sum(index.kernels.map(({ kernel }) => kernel.bytes))),
    figure("Arenas", "bytes", ({ recording }) =>
      sum(recording.units.flatMap((unit) => unit.memory.map((memory) => memory.arena))),
    ),
  ];
}
