// Marks on the many children of a drawing: only CSS classes change, nothing is redrawn.

import { effect } from "@preact/signals";
import type { RefObject } from "preact";
import { useEffect, useRef } from "preact/hooks";
import type { KernelEntry } from "../indices";
import { type Level, levelOf, mark } from "../marks";
import type { Place } from "../recording";

export interface Marked {
  places: Place[];
  kernel: KernelEntry | null;
}

/** Return a reference to the element whose children stand for the entries, in order. */
export function useMarkedGroup(entries: Marked[]): RefObject<SVGGElement | null> {
  const group = useRef<SVGGElement>(null);
  useEffect(
    () =>
      effect(() => {
        const current = mark.value;
        const children = group.current!.children;
        entries.forEach(({ places, kernel }, at) => setLevel(children[at]!, levelOf(current, places, kernel)));
      }),
    [entries],
  );
  return group;
}

const levels = new WeakMap<Element, Level>();

export function setLevel(element: Element, level: Level): void {
  if ((levels.get(element) ?? 0) === level) return;
  levels.set(element, level);
  element.classList.toggle("is-marked", level === 2);
  element.classList.toggle("is-soft", level === 1);
}
