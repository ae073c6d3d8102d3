// A stage: its text, its changes against an earlier stage, and its graph as a drawing.

import { computed, signal } from "@preact/signals";
import type { ComponentChildren } from "preact";
import { Code } from "../code/code";
import * as format from "../format";
import { DrawnGraph } from "../graph/graph";
import type { StageEntry } from "../indices";
import { index, revealed } from "../state";
import { AfterPaint } from "./after_paint";
import { Empty, Toggle } from "./small";

type Mode = "text" | "both" | "graph";
const MODES: [Mode, string][] = [
  ["text", "Text"],
  ["both", "Both"],
  ["graph", "Graph"],
];

const chosen = signal<Mode | null>(null);
const mode = computed<Mode>(() => chosen.value ?? (innerWidth >= 1600 ? "both" : "text"));
const changes = signal(false);

export function StageView({ entry, extra, bar }: { entry: StageEntry; extra?: ComponentChildren; bar?: ComponentChildren }) {
  const { stage } = entry;
  const base = stage.base === null ? null : (index.value!.stages.get(stage.base)?.stage ?? null);
  const shown = stage.graph ? mode.value : "text";
  const line = revealed.value?.stage === stage.id ? revealed.value.line : null;
  return (
    <div class="stage">
      <header class="stage-bar">
        <h2>{stage.title}</h2>
        {stage.stage !== stage.title && <span class="tag">{stage.stage}</span>}
        <span class="faint">
          {format.count(entry.lines, "line")}
          {stage.graph && `, ${format.count(stage.graph.nodes.length, "node")}`}
          {stage.seconds > 0 && `, ${format.seconds(stage.seconds)}`}
        </span>
        <span class="space" />
        {bar}
        {base && (
          <Toggle on={changes.value} title={`What changed from ${base.title}`} onChange={(on) => (changes.value = on)}>
            Changes from {base.title}
          </Toggle>
        )}
        {stage.graph && (
          <span class="choice" role="group" aria-label="How to show the graph">
            {MODES.map(([name, title]) => (
              <button key={name} aria-pressed={shown === name} onClick={() => (chosen.value = name)}>
                {title}
              </button>
            ))}
          </span>
        )}
      </header>
      <div class="stage-body">
        {shown !== "graph" && stage.text && (
          <Code
            key={stage.id}
            text={stage.text}
            language={stage.language}
            blocks={entry.blocks}
            line={line}
            label={stage.title}
            base={base && changes.value ? base.text : null}
          />
        )}
        {shown === "text" && !stage.text && <Empty title="No text">This stage left nothing in the recording.</Empty>}
        {shown !== "text" && stage.graph && (
          <AfterPaint key={stage.id}>
            {() => <DrawnGraph graph={stage.graph!} kernels={entry.kernelOfNode} label={`Graph of ${stage.title}`} />}
          </AfterPaint>
        )}
        {extra}
      </div>
    </div>
  );
}
