// Differences of long texts: first by lines, then by characters within changed lines. A comparison by characters alone gives up
// on texts of 10,000 lines with many small changes, such as the C++ of two versions of a program.

import { Change, diff, presentableDiff } from "@codemirror/merge";

const LIMITS = { scanLimit: 20_000, timeout: 1000 }; // bounds one comparison; the timeout is in milliseconds
const MAX_LINES = 0xd7ff; // distinct lines: each becomes one UTF-16 code unit below the surrogates
const MAX_CHARACTERS = 2000; // longer changed parts are compared by lines only

export function differencesByLine(before: string, after: string): readonly Change[] {
  const numbers = new Map<string, number>();
  const [first, second] = [linesOf(before), linesOf(after)].map((lines) => ({
    letters: lines.map((line) => letterOf(line, numbers)).join(""),
    starts: startsOf(lines),
  }));
  if (numbers.size > MAX_LINES) return diff(before, after, LIMITS);
  return diff(first!.letters, second!.letters, LIMITS).flatMap(({ fromA, toA, fromB, toB }) => {
    const [beginA, endA] = [first!.starts[fromA]!, first!.starts[toA]!];
    const [beginB, endB] = [second!.starts[fromB]!, second!.starts[toB]!];
    return refined(before, after, new Change(beginA, endA, beginB, endB));
  });
}

/** The lines of a text, each with its newline. */
function linesOf(text: string): string[] {
  return text.match(/[^\n]*\n|[^\n]+$/g) ?? [];
}

function letterOf(line: string, numbers: Map<string, number>): string {
  let number = numbers.get(line);
  if (number === undefined) numbers.set(line, (number = numbers.size));
  return String.fromCharCode(number);
}

/** The start of each line, and the end of the last. */
function startsOf(lines: string[]): number[] {
  const starts = [0];
  for (const line of lines) starts.push(starts.at(-1)! + line.length);
  return starts;
}

function refined(before: string, after: string, { fromA, toA, fromB, toB }: Change): readonly Change[] {
  const [long, other] = [toA - fromA, toB - fromB];
  if (!long || !other || Math.max(long, other) > MAX_CHARACTERS) return [new Change(fromA, toA, fromB, toB)];
  const parts = presentableDiff(before.slice(fromA, toA), after.slice(fromB, toB));
  return parts.map((part) => new Change(fromA + part.fromA, fromA + part.toA, fromB + part.fromB, fromB + part.toB));
}
