// Folding of graphs: a box is a node or a folded module.

import type { Graph } from "../recording";

export interface Group {
  key: string;
  title: string;
  parent: Group | null;
  groups: Group[];
  /** The nodes directly in the group, and all nodes in it and its subgroups. */
  own: number[];
  all: number[];
}

export interface Box {
  key: string;
  /** A node's index, or null if the box is a folded group. */
  node: number | null;
  group: Group;
}

export interface Picture {
  boxes: Box[];
  edges: [string, string][];
  /** Groups that are open, outermost first: they are drawn around their boxes. */
  open: Group[];
}

const MAX_FIRST_BOXES = 60; // boxes shown at first: about as many as are readable without zooming
const MIN_FIRST_BOXES = 8; // with fewer boxes, single groups are opened too
const RUN = 30; // nodes per artificial group, if a module has too many nodes
const MAX_IN_A_GROUP = 60; // nodes directly in a module; more are divided into runs

/** The modules of a graph as a tree. Too many nodes in a module, or without one, are divided into runs. */
export function groupsOf(graph: Graph): Group {
  const root = newGroup("", "", null);
  const byKey = new Map<string, Group>();
  graph.nodes.forEach((node, at) => {
    let group = root;
    let prefix = "";
    for (const name of node.path) {
      const key = `${group.key}/${name}`;
      let next = byKey.get(key);
      if (!next) {
        const title = prefix && name.startsWith(`${prefix}.`) ? name.slice(prefix.length + 1) : name;
        next = newGroup(key, title, group);
        byKey.set(key, next);
        group.groups.push(next);
      }
      group = next;
      prefix = name;
    }
    group.own.push(at);
  });
  cutIntoRuns(root, graph);
  collect(root);
  return root;
}

function newGroup(key: string, title: string, parent: Group | null): Group {
  return { key, title, parent, groups: [], own: [], all: [] };
}

function cutIntoRuns(group: Group, graph: Graph): void {
  for (const each of group.groups) cutIntoRuns(each, graph);
  const calls = group.own.filter((node) => graph.nodes[node]!.kind === "call");
  if (calls.length <= MAX_IN_A_GROUP) return;
  group.own = group.own.filter((node) => graph.nodes[node]!.kind !== "call");
  for (let at = 0; at < calls.length; at += RUN) {
    const run = calls.slice(at, at + RUN);
    const name = (node: number | undefined) => graph.nodes[node!]!.name;
    const part = newGroup(`${group.key}/#${at}`, `${name(run[0])} … ${name(run.at(-1))}`, group);
    part.own = run;
    group.groups.push(part);
  }
}

function collect(group: Group): number[] {
  group.all = [...group.own, ...group.groups.flatMap(collect)];
  return group.all;
}

/** The groups to open at first: whole levels from the outside, as long as they fit, then single groups if there are few boxes. */
export function openAtFirst(root: Group, hidden: (node: number) => boolean): Set<string> {
  const open = new Set([root.key]);
  const more = (group: Group) => group.groups.length + group.own.filter((node) => !hidden(node)).length - 1;
  let boxes = more(root) + 1;
  let level = root.groups;
  const openAll = (groups: Group[]) => {
    for (const group of groups) open.add(group.key);
    boxes += groups.reduce((sum, group) => sum + more(group), 0);
    level = groups.flatMap((group) => group.groups);
  };
  while (level.length && boxes + level.reduce((sum, group) => sum + more(group), 0) <= MAX_FIRST_BOXES) openAll(level);
  if (boxes < MIN_FIRST_BOXES) for (const group of level) if (boxes + more(group) <= MAX_FIRST_BOXES) openAll([group]);
  return open;
}

export function pictureOf(graph: Graph, root: Group, open: Set<string>, hidden: (node: number) => boolean): Picture {
  const boxOfNode = new Map<number, string>();
  const picture: Picture = { boxes: [], edges: [], open: [] };
  const visit = (group: Group) => {
    if (!open.has(group.key)) return fold(group);
    if (group.parent && group.all.some((node) => !hidden(node))) picture.open.push(group);
    for (const node of group.own) {
      if (hidden(node)) continue;
      picture.boxes.push({ key: `n${node}`, node, group });
      boxOfNode.set(node, `n${node}`);
    }
    group.groups.forEach(visit);
  };
  const fold = (group: Group) => {
    const shown = group.all.filter((node) => !hidden(node));
    if (!shown.length) return;
    picture.boxes.push({ key: `g${group.key}`, node: null, group });
    for (const node of shown) boxOfNode.set(node, `g${group.key}`);
  };
  visit(root);
  const seen = new Set<string>();
  for (const [from, to] of graph.edges) {
    const [a, b] = [boxOfNode.get(from), boxOfNode.get(to)];
    if (a === undefined || b === undefined || a === b || seen.has(`${a}>${b}`)) continue;
    seen.add(`${a}>${b}`);
    picture.edges.push([a, b]);
  }
  return picture;
}

/** The keys of the groups that a node is in, outermost first. */
export function groupsAround(root: Group, node: number): string[] {
  const inside = root.groups.find((group) => group.all.includes(node));
  return inside ? [inside.key, ...groupsAround(inside, node)] : [];
}
