// A drawn graph: folds by module, pans, zooms, and takes part in marks.

import { effect, useSignal } from "@preact/signals";
import { useEffect, useMemo, useRef } from "preact/hooks";
import type { KernelEntry } from "../indices";
import { type Level, type Mark, hover, levelOf, mark, markOf, pinned, togglePin } from "../marks";
import { setLevel } from "../parts/marked_group";
import type { Graph, GraphNode } from "../recording";
import { type Box, groupsAround, groupsOf, openAtFirst, pictureOf } from "./fold";
import { type Layout, layOut } from "./layout";
import { Canvas, type CanvasHandle } from "./canvas";

const MOST_INPUTS = 24; // more inputs and constants are hidden at first
const MOST_BOXES = 600; // that a layout takes on: more take many seconds
const MOST_LETTERS = 30; // of a label
const COLOURS = 10; // of kernels, as in the styles

interface Properties {
  graph: Graph;
  kernels: (KernelEntry | null)[];
  label: string;
}

export function DrawnGraph({ graph, kernels, label }: Properties) {
  const isInput = (node: number) => graph.nodes[node]!.kind === "input" || graph.nodes[node]!.kind === "constant";
  const many = useMemo(() => graph.nodes.filter((_, at) => isInput(at)).length > MOST_INPUTS, [graph]);
  const inputs = useSignal(!many);
  const shownInputs = inputs.value;
  const hidden = useMemo(() => (shownInputs ? () => false : isInput), [graph, shownInputs]);
  const root = useMemo(() => groupsOf(graph), [graph]);
  const open = useSignal<Set<string> | null>(null);
  const wanted = useMemo(() => open.value ?? openAtFirst(root, hidden), [root, hidden, open.value]);
  const picture = useMemo(() => pictureOf(graph, root, wanted, hidden), [graph, root, wanted, hidden]);
  const layout = useMemo(() => layOut(picture, (box) => boxSize(graph, box)), [picture]);
  const canvas = useRef<CanvasHandle>(null);
  const find = useSignal("");
  const sought = useRef<number | null>(null);

  const toggle = (key: string) => {
    const next = new Set(wanted);
    if (!next.delete(key)) next.add(key);
    if (pictureOf(graph, root, next, hidden).boxes.length <= MOST_BOXES) open.value = next;
  };
  const all = () => {
    const next = new Set<string>();
    const add = (group: typeof root) => {
      next.add(group.key);
      group.groups.forEach(add);
    };
    add(root);
    open.value = next;
  };
  /** Show the next node that has the text, unfolding what it is in. */
  const search = (text: string, after: number) => {
    find.value = text;
    const node = nextWith(graph, text, after, hidden);
    sought.current = node;
    if (node === null) return;
    const next = new Set([...wanted, ...groupsAround(root, node)]);
    if (pictureOf(graph, root, next, hidden).boxes.length > MOST_BOXES) return;
    if (next.size > wanted.size) open.value = next;
    else showSought();
  };
  const showSought = () => {
    const placed = sought.current === null ? undefined : layout.boxes.get(`n${sought.current}`);
    if (placed) canvas.current?.centre(placed);
  };
  useEffect(() => {
    const frame = requestAnimationFrame(showSought);
    return () => cancelAnimationFrame(frame);
  }, [layout]);
  const foldable = root.groups.length > 0;
  const shown = picture.boxes.filter((box) => box.node !== null).length;
  return (
    <div class="graph">
      <div class="graph-bar">
        <input
          type="search"
          placeholder="Find a node"
          aria-label="Find a node"
          value={find.value}
          onInput={(event) => search(event.currentTarget.value, -1)}
          onKeyDown={(event) => event.key === "Enter" && search(find.value, sought.current ?? -1)}
        />
        <button onClick={() => canvas.current?.fit()} title="Fit the graph to the view">
          Fit
        </button>
        {foldable && <button onClick={() => (open.value = new Set([root.key]))}>Fold all</button>}
        {foldable && graph.nodes.length <= MOST_BOXES && <button onClick={all}>Unfold all</button>}
        {many && (
          <button class="toggle" aria-pressed={shownInputs} onClick={() => (inputs.value = !shownInputs)}>
            Inputs
          </button>
        )}
        <span class="faint">
          {shown} of {graph.nodes.length} nodes drawn
        </span>
      </div>
      <Canvas ref={canvas} width={layout.width} height={layout.height} label={label}>
        <Drawing
          graph={graph}
          kernels={kernels}
          boxes={picture.boxes}
          layout={layout}
          found={find.value}
          onToggle={toggle}
          frames={picture.open.map((group) => ({ key: group.key, title: group.title }))}
          show={(key) => canvas.current?.show(layout.boxes.get(key)!)}
        />
      </Canvas>
    </div>
  );
}

interface DrawingProperties {
  graph: Graph;
  kernels: (KernelEntry | null)[];
  boxes: Box[];
  frames: { key: string; title: string }[];
  layout: Layout;
  found: string;
  onToggle: (group: string) => void;
  show: (key: string) => void;
}

function Drawing({ graph, kernels, boxes, frames, layout, found, onToggle, show }: DrawingProperties) {
  const elements = useRef(new Map<string, SVGGElement>());
  const lines = useRef<(SVGPathElement | null)[]>([]);
  useEffect(() => effect(() => paint(mark.value)), [layout]);
  useEffect(
    () =>
      effect(() => {
        const pin = pinned.value;
        const best = pin && boxes.find((box) => levelOfBox(pin, box) === 2);
        if (best && !elements.current.get(best.key)?.closest("svg")?.matches(":hover"))
          requestAnimationFrame(() => show(best.key));
      }),
    [layout],
  );

  const levelOfBox = (current: Mark | null, box: Box): Level => {
    let level: Level = 0;
    for (const node of box.node === null ? box.group.all : [box.node]) {
      const own = levelOf(current, graph.nodes[node]!.places, kernels[node] ?? null);
      if (own > level) level = own;
    }
    return level;
  };
  const paint = (current: Mark | null) => {
    const levels = new Map(boxes.map((box) => [box.key, levelOfBox(current, box)]));
    for (const [key, element] of elements.current) setLevel(element, levels.get(key) ?? 0);
    layout.lines.forEach(({ from, to }, at) => {
      const level = Math.min(levels.get(from) ?? 0, levels.get(to) ?? 0) as Level;
      if (lines.current[at]) setLevel(lines.current[at], level);
    });
  };
  const keep = (key: string) => (element: SVGGElement | null) => {
    if (element) elements.current.set(key, element);
    else elements.current.delete(key);
  };
  return (
    <>
      {frames.map(({ key, title }) => {
        const at = layout.boxes.get(`c${key}`);
        return (
          at && (
            <g key={`c${key}`} class="frame" transform={`translate(${at.x},${at.y})`}>
              <rect width={at.width} height={at.height} rx={8} />
              <text x={8} y={13} class="fold" onClick={() => onToggle(key)}>
                − {title}
                <title>Fold {title}</title>
              </text>
            </g>
          )
        );
      })}
      {layout.lines.map(({ from, to, path }, at) => (
        <path
          key={`${from}>${to}`}
          class="edge"
          d={path}
          ref={(element) => void (lines.current[at] = element)}
          marker-end="url(#arrow)"
        />
      ))}
      {boxes.map((box) => {
        const at = layout.boxes.get(box.key)!;
        const common = { ref: keep(box.key), transform: `translate(${at.x},${at.y})` };
        const hit = found !== "" && titleOf(graph, box).toLowerCase().includes(found.toLowerCase()) ? "found" : "";
        if (box.node === null) {
          return (
            <g key={box.key} {...common} class={`node group ${hit}`} onClick={() => onToggle(box.group.key)}>
              <rect width={at.width} height={at.height} rx={6} />
              <text x={10} y={17} class="name">
                + {short(box.group.title)}
              </text>
              <text x={10} y={32} class="detail">
                {box.group.all.length} nodes
              </text>
              <title>{box.group.key.replaceAll("/", " ")}</title>
            </g>
          );
        }
        const node = graph.nodes[box.node]!;
        const kernel = kernels[box.node] ?? null;
        return (
          <g
            key={box.key}
            {...common}
            class={`node ${node.kind} ${hit}`}
            onClick={() => togglePin(markOf(node.places, kernel))}
            onMouseEnter={() => hover(markOf(node.places, kernel))}
            onMouseLeave={() => hover(null)}
          >
            <rect width={at.width} height={at.height} rx={4} />
            {kernel && <rect class={`stripe colour-${kernel.index % COLOURS}`} width={4} height={at.height} />}
            <text x={10} y={17} class="name">
              {short(textsOf(node)[0])}
            </text>
            <text x={10} y={32} class="detail">
              {short(node.detail)}
            </text>
            <title>
              {[`${node.name}: ${node.label}`, node.detail, kernel && `calculated by ${kernel.kernel.name}`]
                .filter(Boolean)
                .join("\n")}
            </title>
          </g>
        );
      })}
    </>
  );
}

/** The next node after one, or the first, whose name or label has a text. */
function nextWith(graph: Graph, text: string, after: number, hidden: (node: number) => boolean): number | null {
  const wanted = text.trim().toLowerCase();
  if (!wanted) return null;
  const matches = graph.nodes.flatMap(({ name, label }, at) => {
    return !hidden(at) && `${name} ${label}`.toLowerCase().includes(wanted) ? [at] : [];
  });
  return matches.find((at) => at > after) ?? matches[0] ?? null;
}

function titleOf(graph: Graph, box: Box): string {
  if (box.node === null) return box.group.title;
  const node = graph.nodes[box.node]!;
  return `${node.name} ${node.label}`;
}

function boxSize(graph: Graph, box: Box): { width: number; height: number } {
  const texts = box.node === null ? [`+ ${box.group.title}`, "000 nodes"] : textsOf(graph.nodes[box.node]!);
  const letters = Math.max(...texts.map((text) => short(text).length));
  return { width: Math.max(70, 20 + letters * 7.3), height: 40 };
}

function textsOf(node: GraphNode): [string, string] {
  return [node.label === node.kind ? node.name : node.label, node.detail];
}

function short(text: string): string {
  return text.length > MOST_LETTERS ? `${text.slice(0, MOST_LETTERS - 1)}…` : text;
}
