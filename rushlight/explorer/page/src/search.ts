// Search over all parts of a recording.

import { batch } from "@preact/signals";
import { type Index, blockAt, lineText, placeName } from "./indices";
import { markOf, pinned } from "./marks";
import type { EagerCall } from "./recording";
import { openKernel } from "./parts/open_kernel";
import { go, goToStage, showFile } from "./state";

export interface Hit {
  kind: string;
  title: string;
  detail: string;
  open: () => void;
}

const MAX_OF_A_KIND = 40;
const MAX_CHARACTERS = 160; // longer lines are cut

export function search(index: Index, text: string): Hit[] {
  const wanted = text.trim().toLowerCase();
  if (!wanted) return [];
  return [
    ...units(index, wanted),
    ...kernels(index, wanted),
    ...source(index, wanted),
    ...guards(index, wanted),
    ...operators(index, wanted),
    ...nodes(index, wanted),
    ...stages(index, wanted),
  ];
}

function units(index: Index, wanted: string): Hit[] {
  const found = index.recording.units.filter((unit) => unit.name.toLowerCase().includes(wanted));
  return found.slice(0, MAX_OF_A_KIND).map((unit) => ({
    kind: "unit",
    title: unit.name,
    detail: unit.status,
    open: () => go({ view: unit.kind === "script" ? "TorchScript" : "Capture", unit: unit.id }),
  }));
}

function kernels(index: Index, wanted: string): Hit[] {
  const found = index.kernels.filter(({ kernel }) =>
    `${kernel.name} ${kernel.operators.join(" ")} ${kernel.buffers.join(" ")}`.toLowerCase().includes(wanted),
  );
  return found.slice(0, MAX_OF_A_KIND).map((entry) => ({
    kind: "kernel",
    title: `${entry.kernel.name} of ${entry.kernel.graph}`,
    detail: entry.kernel.operators.join(", "),
    open: () => openKernel(entry),
  }));
}

function source(index: Index, wanted: string): Hit[] {
  return index.recording.files
    .flatMap((file, at) =>
      linesWith(file.text, wanted).map((line) => {
        const place = `${at}:${line}`;
        const open = () =>
          batch(() => {
            showFile(at);
            pinned.value = markOf([place]);
          });
        return { kind: "source", title: placeName(index.recording, place), detail: lineText(index.recording, place), open };
      }),
    )
    .slice(0, MAX_OF_A_KIND);
}

function guards(index: Index, wanted: string): Hit[] {
  const found = index.recording.units.flatMap((unit) => unit.guards.map((guard) => ({ unit, guard })));
  return found
    .filter(({ guard }) => guard.text.toLowerCase().includes(wanted))
    .slice(0, MAX_OF_A_KIND)
    .map(({ unit, guard }) => ({
      kind: "guard",
      title: unit.name,
      detail: guard.text,
      open: () => go({ view: "Capture", unit: unit.id }),
    }));
}

function operators(index: Index, wanted: string): Hit[] {
  const found = index.recording.eager.filter((call) => call.operator.toLowerCase().includes(wanted));
  const open = ({ places }: EagerCall) =>
    batch(() => {
      pinned.value = markOf(places);
      go({ view: "Eager" });
    });
  return found
    .slice(0, MAX_OF_A_KIND)
    .map((call) => ({ kind: "eager", title: call.operator, detail: call.inputs.join(", "), open: () => open(call) }));
}

function nodes(index: Index, wanted: string): Hit[] {
  const hits: Hit[] = [];
  for (const { stage, kernelOfNode } of index.stages.values()) {
    for (const [at, node] of (stage.graph?.nodes ?? []).entries()) {
      if (hits.length >= MAX_OF_A_KIND) return hits;
      if (!`${node.name} ${node.label}`.toLowerCase().includes(wanted)) continue;
      const open = () =>
        batch(() => {
          pinned.value = markOf(node.places, kernelOfNode[at] ?? null);
          goToStage(stage.id, node.line ?? undefined);
        });
      hits.push({ kind: "node", title: `${node.name} of ${stage.title}`, detail: `${node.label} ${node.detail}`, open });
    }
  }
  return hits;
}

function stages(index: Index, wanted: string): Hit[] {
  const hits: Hit[] = [];
  for (const { stage, blocks } of index.stages.values()) {
    for (const line of linesWith(stage.text, wanted)) {
      if (hits.length >= MAX_OF_A_KIND) return hits;
      const open = () =>
        batch(() => {
          const block = blockAt(blocks, line);
          if (block) pinned.value = markOf(block.places, block.kernel);
          goToStage(stage.id, line);
        });
      hits.push({ kind: stage.stage, title: `${stage.title}:${line}`, detail: lineAt(stage.text, line), open });
    }
  }
  return hits;
}

const lowered = new Map<string, string>();

/** The numbers of the first lines that contain a text, at most MAX_OF_A_KIND. */
function linesWith(text: string, wanted: string): number[] {
  let lower = lowered.get(text);
  if (lower === undefined) lowered.set(text, (lower = text.toLowerCase()));
  const lines: number[] = [];
  let line = 1;
  let counted = 0;
  for (let at = lower.indexOf(wanted); at >= 0 && lines.length < MAX_OF_A_KIND; at = lower.indexOf(wanted, at)) {
    for (let end = lower.indexOf("\n", counted); end >= 0 && end < at; end = lower.indexOf("\n", counted)) {
      line++;
      counted = end + 1;
    }
    lines.push(line);
    const end = lower.indexOf("\n", at);
    if (end < 0) break;
    at = end;
  }
  return lines;
}

function lineAt(text: string, line: number): string {
  return (text.split("\n", line)[line - 1] ?? "").trim().slice(0, MAX_CHARACTERS);
}
