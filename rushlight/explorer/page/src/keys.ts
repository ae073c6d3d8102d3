// Keyboard shortcuts.

import { signal } from "@preact/signals";
import { fileOf, lineOf } from "./indices";
import { markOf, pinned } from "./marks";
import { stepStage } from "./parts/strip";
import { type View, dark, file, go, index } from "./state";

export const KEYS: [string, string][] = [
  ["g o", "Overview"],
  ["g c", "Capture"],
  ["g g", "Graphs"],
  ["g i", "Inductor"],
  ["g t", "Time"],
  ["g s", "TorchScript"],
  ["g e", "Eager"],
  ["g d", "Compare (differences)"],
  ["j  k", "the next or previous line that something came from, pinned"],
  ["[  ]", "the stage before or after"],
  ["/", "search everything"],
  ["Ctrl F", "search in the text that has the focus"],
  ["Esc", "let go of the pinned mark, close what is open"],
  ["t", "dark or light"],
  ["← → space", "TorchScript's steps: back, forward, play"],
  ["?", "these keys"],
];

const LETTERS: Record<string, View> = {
  o: "Overview",
  c: "Capture",
  g: "Graphs",
  i: "Inductor",
  t: "Time",
  s: "TorchScript",
  e: "Eager",
  d: "Compare",
};

export const help = signal(false);
export const searching = signal(false);
let leading = false;

export function isTyping(event: KeyboardEvent): boolean {
  const target = event.target as HTMLElement;
  return /^(INPUT|TEXTAREA|SELECT)$/.test(target.tagName) && (target as HTMLInputElement).type !== "range";
}

export function listenToKeys(): void {
  addEventListener("keydown", (event) => {
    if (event.key === "Escape") return escape(event);
    if (event.ctrlKey || event.metaKey || event.altKey || isTyping(event) || !index.peek()) return;
    if (press(event.key)) event.preventDefault();
  });
}

function escape(event: KeyboardEvent): void {
  if (help.peek() || searching.peek()) {
    help.value = searching.value = false;
    (event.target as HTMLElement).blur();
  } else if (!isTyping(event)) pinned.value = null;
}

/** Handle a key; return whether it is a shortcut. */
function press(key: string): boolean {
  if (leading) {
    leading = false;
    const view = LETTERS[key];
    if (view) go({ view });
    return view !== undefined;
  }
  if (key === "g") leading = true;
  else if (key === "/") focusSearch();
  else if (key === "?") help.value = !help.peek();
  else if (key === "[") stepStage(-1);
  else if (key === "]") stepStage(1);
  else if (key === "j") stepLine(1);
  else if (key === "k") stepLine(-1);
  else if (key === "t") dark.value = !dark.peek();
  else return false;
  return true;
}

function focusSearch(): void {
  document.querySelector<HTMLInputElement>("#search")?.focus();
}

/** Pin the next line of the shown file that some stage came from. */
function stepLine(by: 1 | -1): void {
  const found = index.peek()!;
  const at = file.peek();
  const known = new Set([...found.status.keys(), ...found.places].filter((place) => fileOf(place) === at).map(lineOf));
  const lines = [...known].sort((a, b) => a - b);
  const now = [...(pinned.peek()?.places ?? [])].filter((place) => fileOf(place) === at).map(lineOf);
  const next =
    by > 0
      ? lines.find((line) => line > Math.max(0, ...now))
      : lines.reverse().find((line) => line < Math.min(Infinity, ...now));
  if (next !== undefined) pinned.value = markOf([`${at}:${next}`]);
}
