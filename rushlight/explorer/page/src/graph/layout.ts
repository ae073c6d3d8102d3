// The layout of a graph: positions of boxes and lines.

import { Graph as Layered, layout } from "@dagrejs/dagre";
import type { Box, Group, Picture } from "./fold";

export interface Placed {
  x: number;
  y: number;
  width: number;
  height: number;
}

export interface Layout {
  width: number;
  height: number;
  /** Positions by box key; for frames the key is "c" and the group's key. */
  boxes: Map<string, Placed>;
  lines: { from: string; to: string; path: string }[];
}

type Point = { x: number; y: number };

const SPACE = { rankdir: "TB", nodesep: 14, ranksep: 30, edgesep: 8, marginx: 20, marginy: 40 };
const TITLE = 13; // pixels over the boxes of a frame, for its title
const MAX_BOXES_IN_FRAMES = 250; // with more boxes, frames around modules would take seconds to lay out

export function layOut(picture: Picture, sizeOf: (box: Box) => { width: number; height: number }): Layout {
  const frames = picture.boxes.length <= MAX_BOXES_IN_FRAMES ? picture.open : [];
  const graph = new Layered({ compound: frames.length > 0 });
  graph.setGraph({ ...SPACE });
  graph.setDefaultEdgeLabel(() => ({}));
  const framed = new Set(frames.map((group) => group.key));
  for (const box of picture.boxes) graph.setNode(box.key, sizeOf(box));
  for (const group of frames) graph.setNode(`c${group.key}`, {});
  for (const group of frames)
    if (group.parent && framed.has(group.parent.key)) graph.setParent(`c${group.key}`, `c${group.parent.key}`);
  for (const { key, node, group } of picture.boxes) {
    const around = node === null ? group.parent : group;
    if (around && framed.has(around.key)) graph.setParent(key, `c${around.key}`);
  }
  for (const [from, to] of picture.edges) graph.setEdge(from, to);
  layout(graph);
  return read(graph, picture);
}

function read(graph: Layered, picture: Picture): Layout {
  const boxes = new Map<string, Placed>();
  for (const key of graph.nodes()) {
    const { x, y, width, height } = graph.node(key) as Placed;
    if (Number.isFinite(x)) boxes.set(key, { x: x - width / 2, y: y - height / 2, width, height });
  }
  makeRoomForTitles(boxes, picture);
  const lines = picture.edges.map(([from, to]) => {
    const { points } = graph.edge(from, to) as { points: Point[] };
    return { from, to, path: curve(points) };
  });
  const { width, height } = graph.graph() as { width?: number; height?: number };
  return { width: width ?? 100, height: height ?? 100, boxes, lines };
}

/** Extend frames upwards for their titles: outer frames by more, so that titles do not overlap. */
function makeRoomForTitles(boxes: Map<string, Placed>, { open }: Picture): void {
  const levels = new Map<Group, number>();
  for (const group of [...open].reverse()) {
    const level = Math.max(0, ...group.groups.map((each) => levels.get(each) ?? 0)) + 1;
    levels.set(group, level);
    const frame = boxes.get(`c${group.key}`);
    if (!frame) continue;
    frame.y -= level * TITLE;
    frame.height += level * TITLE;
  }
}

/** A line through points, with rounded corners. */
function curve(points: Point[]): string {
  const [first, ...rest] = points.map(({ x, y }) => ({ x: Math.round(x), y: Math.round(y) }));
  if (!first) return "";
  let path = `M${first.x},${first.y}`;
  for (let at = 0; at < rest.length - 1; at++) {
    const [corner, next] = [rest[at]!, rest[at + 1]!];
    path += `Q${corner.x},${corner.y} ${(corner.x + next.x) / 2},${(corner.y + next.y) / 2}`;
  }
  const last = rest[rest.length - 1];
  return last ? `${path}L${last.x},${last.y}` : path;
}
