// Differences of long texts: by lines at first, and by letters only within changed lines. A search by letters alone would give up
// where many of 10,000 lines differ a little, as the C++ of two versions of a program does.

import { Change, diff, presentableDiff } from "@codemirror/merge";

const LIMITS = { scanLimit: 20_000, timeout: 1000 }; // bounds one comparison; the timeout is in milliseconds
const MOST_LINES = 0xd7ff; // distinct ones: each is one letter below those that come in pairs
const MOST_LETTERS = 2000; // longer changed parts are compared by lines only

export function differencesByLine(before: string, after: string): readonly Change[] {
  const numbers = new Map<string, number>();
  const [first, second] = [linesOf(before), linesOf(after)].map((lines) => ({
    letters: lines.map((line) => letterOf(line, numbers)).join(""),
    starts: startsOf(lines),
  }));
  if (numbers.size > MOST_LINES) return diff(before, after, LIMITS);
  return diff(first!.letters, second!.letters, LIMITS).flatMap(({ fromA, toA, fromB, toB }) => {
    const [beginA, endA] = [first!.starts[fromA]!, first!.starts[toA]!];
    const [beginB, endB] = [second!.starts[fromB]!, second!.starts[toB]!];
    return refined(before, after, new Change(beginA, endA, beginB, endB));
  });
}

/** The lines of a text, each with its end. */
function linesOf(text: string): string[] {
  return text.match(/[^\n]*\n|[^\n]+$/g) ?? [];
}

function letterOf(line: string, numbers: Map<string, number>): string {
  let number = numbers.get(line);
  if (number === undefined) numbers.set(line, (number = numbers.size));
  return String.fromCharCode(number);
}

/** Where each line begins, and where the last one ends. */
function startsOf(lines: string[]): number[] {
  const starts = [0];
  for (const line of lines) starts.push(starts.at(-1)! + line.length);
  return starts;
}

function refined(before: string, after: string, { fromA, toA, fromB, toB }: Change): readonly Change[] {
  const [long, other] = [toA - fromA, toB - fromB];
  if (!long || !other || Math.max(long, other) > MOST_LETTERS) return [new Change(fromA, toA, fromB, toB)];
  const parts = presentableDiff(before.slice(fromA, toA), after.slice(fromB, toB));
  return parts.map((part) => new Change(fromA + part.fromA, fromA + part.toA, fromB + part.fromB, fromB + part.toB));
}
