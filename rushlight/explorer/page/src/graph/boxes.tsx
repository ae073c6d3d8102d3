// The boxes of a drawn graph: nodes, folded groups, and the frames around open ones.

import type { Ref } from "preact";
import type { KernelEntry } from "../indices";
import { hover, markOf, togglePin } from "../marks";
import type { Graph, GraphNode } from "../recording";
import type { Box, Group } from "./fold";
import type { Placed } from "./layout";

const MAX_LETTERS = 30; // longer labels are cut
const LETTER_WIDTH = 7.3; // pixels
const COLOURS = 10; // the number of kernel colours in the styles; more kernels reuse them

interface BoxProperties {
  at: Placed;
  reference: Ref<SVGGElement>;
}

export function NodeBox({ at, reference, node, kernel }: BoxProperties & { node: GraphNode; kernel: KernelEntry | null }) {
  const [title, detail] = textsOf(node);
  const facts = [`${node.name}: ${node.label}`, node.detail, kernel && `calculated by ${kernel.kernel.name}`];
  return (
    <g
      ref={reference}
      class={`node ${node.kind}`}
      transform={`translate(${at.x},${at.y})`}
      onClick={() => togglePin(markOf(node.places, kernel))}
      onMouseEnter={() => hover(markOf(node.places, kernel))}
      onMouseLeave={() => hover(null)}
    >
      <rect width={at.width} height={at.height} rx={4} />
      {kernel && <rect class={`stripe colour-${kernel.index % COLOURS}`} width={4} height={at.height} />}
      <text x={10} y={17} class="name">
        {short(title)}
      </text>
      <text x={10} y={32} class="detail">
        {short(detail)}
      </text>
      <title>{facts.filter(Boolean).join("\n")}</title>
    </g>
  );
}

interface GroupProperties extends BoxProperties {
  group: Group;
  graph: Graph;
  onToggle: (key: string) => void;
}

export function GroupBox({ at, reference, group, graph, onToggle }: GroupProperties) {
  const places = () => group.all.flatMap((node) => graph.nodes[node]!.places);
  return (
    <g
      ref={reference}
      class="node group"
      transform={`translate(${at.x},${at.y})`}
      onClick={() => onToggle(group.key)}
      onMouseEnter={() => hover(markOf(places()))}
      onMouseLeave={() => hover(null)}
    >
      <rect width={at.width} height={at.height} rx={6} />
      <text x={10} y={17} class="name">
        + {short(group.title)}
      </text>
      <text x={10} y={32} class="detail">
        {group.all.length} nodes
      </text>
      <title>{group.key.replaceAll("/", " ")}</title>
    </g>
  );
}

export function Frame({ at, group, onToggle }: { at: Placed; group: Group; onToggle: (key: string) => void }) {
  return (
    <g class="frame" transform={`translate(${at.x},${at.y})`}>
      <rect width={at.width} height={at.height} rx={8} />
      <text x={8} y={13} class="fold" onClick={() => onToggle(group.key)}>
        − {group.title}
        <title>Fold {group.title}</title>
      </text>
    </g>
  );
}

export function boxSize(graph: Graph, box: Box): { width: number; height: number } {
  const texts = box.node === null ? [`+ ${box.group.title}`, "000 nodes"] : textsOf(graph.nodes[box.node]!);
  const letters = Math.max(...texts.map((text) => short(text).length));
  return { width: Math.max(70, 20 + letters * LETTER_WIDTH), height: 40 };
}

/** Whether a node's name or label contains a text (in lower case). */
export function hasText(node: GraphNode, text: string): boolean {
  return `${node.name} ${node.label}`.toLowerCase().includes(text);
}

function textsOf(node: GraphNode): [string, string] {
  return [node.label === node.kind ? node.name : node.label, node.detail];
}

function short(text: string): string {
  return text.length > MAX_LETTERS ? `${text.slice(0, MAX_LETTERS - 1)}…` : text;
}
