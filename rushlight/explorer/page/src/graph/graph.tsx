// A graph view: folds by module, pans, zooms, and shows and sets marks.

import { useSignal } from "@preact/signals";
import { useEffect, useMemo, useRef } from "preact/hooks";
import type { KernelEntry } from "../indices";
import type { Graph } from "../recording";
import { boxSize, hasText } from "./boxes";
import { Canvas, type CanvasHandle } from "./canvas";
import { Drawing } from "./drawing";
import { type Group, groupsAround, groupsOf, openAtFirst, pictureOf } from "./fold";
import { layOut } from "./layout";

const MAX_INPUTS = 24; // more inputs and constants are hidden at first
const MAX_BOXES = 600; // the layout of more takes many seconds

interface Properties {
  graph: Graph;
  kernels: (KernelEntry | null)[];
  label: string;
}

export function DrawnGraph({ graph, kernels, label }: Properties) {
  const isInput = (node: number) => graph.nodes[node]!.kind === "input" || graph.nodes[node]!.kind === "constant";
  const many = useMemo(() => graph.nodes.filter((_, at) => isInput(at)).length > MAX_INPUTS, [graph]);
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
    if (pictureOf(graph, root, next, hidden).boxes.length <= MAX_BOXES) open.value = next;
  };
  /** Show the next node that contains the text, and unfold the groups around it. */
  const search = (text: string, after: number) => {
    find.value = text;
    const node = nextWith(graph, text, after, hidden);
    sought.current = node;
    if (node === null) return;
    const next = new Set([...wanted, ...groupsAround(root, node)]);
    if (pictureOf(graph, root, next, hidden).boxes.length > MAX_BOXES) return;
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
        {foldable && graph.nodes.length <= MAX_BOXES && (
          <button onClick={() => (open.value = keysOf(root))}>Unfold all</button>
        )}
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
          picture={picture}
          layout={layout}
          found={find.value}
          onToggle={toggle}
          show={(key) => canvas.current?.show(layout.boxes.get(key)!)}
        />
      </Canvas>
    </div>
  );
}

function keysOf(group: Group): Set<string> {
  return new Set([group.key, ...group.groups.flatMap((each) => [...keysOf(each)])]);
}

/** The next node after a given one whose name or label contains a text; wraps around to the first. */
function nextWith(graph: Graph, text: string, after: number, hidden: (node: number) => boolean): number | null {
  const wanted = text.trim().toLowerCase();
  if (!wanted) return null;
  const matches = graph.nodes.flatMap((node, at) => (!hidden(at) && hasText(node, wanted) ? [at] : []));
  return matches.find((at) => at > after) ?? matches[0] ?? null;
}
