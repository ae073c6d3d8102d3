// The drawing of a graph after layout. Marked and found nodes only change their CSS classes; nothing is redrawn.

import { effect } from "@preact/signals";
import { useEffect, useRef } from "preact/hooks";
import type { KernelEntry } from "../indices";
import { type Level, type Mark, levelOf, mark, pinned } from "../marks";
import { setLevel } from "../parts/marked_group";
import type { Graph } from "../recording";
import { Frame, GroupBox, NodeBox, hasText } from "./boxes";
import type { Box, Picture } from "./fold";
import type { Layout } from "./layout";

interface Properties {
  graph: Graph;
  kernels: (KernelEntry | null)[];
  picture: Picture;
  layout: Layout;
  /** The text that was searched for. */
  found: string;
  onToggle: (group: string) => void;
  /** Scroll a box into view. */
  show: (key: string) => void;
}

export function Drawing(properties: Properties) {
  const { graph, kernels, picture, layout, onToggle } = properties;
  const elements = useRef(new Map<string, SVGGElement>());
  const lines = useRef<(SVGPathElement | null)[]>([]);
  useMarks(properties, elements.current, lines.current);
  const keep = (key: string) => (element: SVGGElement | null) => {
    if (element) elements.current.set(key, element);
    else elements.current.delete(key);
  };
  return (
    <>
      {picture.open.map((group) => {
        const at = layout.boxes.get(`c${group.key}`);
        return at && <Frame key={`c${group.key}`} at={at} group={group} onToggle={onToggle} />;
      })}
      {layout.lines.map(({ from, to, path }, at) => {
        const reference = (element: SVGPathElement | null) => void (lines.current[at] = element);
        return <path key={`${from}>${to}`} class="edge" d={path} ref={reference} marker-end="url(#arrow)" />;
      })}
      {picture.boxes.map(({ key, node, group }) => {
        const common = { key, at: layout.boxes.get(key)!, reference: keep(key) };
        if (node === null) return <GroupBox {...common} group={group} graph={graph} onToggle={onToggle} />;
        return <NodeBox {...common} node={graph.nodes[node]!} kernel={kernels[node] ?? null} />;
      })}
    </>
  );
}

/** Update the classes of boxes and lines when the mark or the search changes. */
function useMarks(properties: Properties, elements: Map<string, SVGGElement>, lines: (SVGPathElement | null)[]): void {
  const { graph, picture, layout, found, show } = properties;
  useEffect(() => effect(() => paint(properties, mark.value, elements, lines)), [layout]);
  useEffect(
    () =>
      effect(() => {
        const pin = pinned.value;
        const best = pin && picture.boxes.find((box) => levelOfBox(properties, pin, box) === 2);
        const pointedAt = best && elements.get(best.key)?.closest("svg")?.matches(":hover");
        if (best && !pointedAt) requestAnimationFrame(() => show(best.key));
      }),
    [layout],
  );
  useEffect(() => {
    const text = found.trim().toLowerCase();
    for (const box of picture.boxes) {
      const hit = text !== "" && nodesOf(box).some((node) => hasText(graph.nodes[node]!, text));
      elements.get(box.key)?.classList.toggle("found", hit);
    }
  }, [layout, found]);
}

function paint(
  properties: Properties,
  current: Mark | null,
  elements: Map<string, SVGGElement>,
  lines: (SVGPathElement | null)[],
) {
  const levels = new Map(properties.picture.boxes.map((box) => [box.key, levelOfBox(properties, current, box)]));
  for (const [key, element] of elements) setLevel(element, levels.get(key) ?? 0);
  properties.layout.lines.forEach(({ from, to }, at) => {
    const level = Math.min(levels.get(from) ?? 0, levels.get(to) ?? 0) as Level;
    if (lines[at]) setLevel(lines[at], level);
  });
}

function levelOfBox({ graph, kernels }: Properties, current: Mark | null, box: Box): Level {
  let level: Level = 0;
  for (const node of nodesOf(box)) {
    const own = levelOf(current, graph.nodes[node]!.places, kernels[node] ?? null);
    if (own > level) level = own;
  }
  return level;
}

function nodesOf(box: Box): number[] {
  return box.node === null ? box.group.all : [box.node];
}
