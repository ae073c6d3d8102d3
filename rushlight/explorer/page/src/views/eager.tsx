// Operators that ran eagerly: how the dispatcher handled them, and the tape that they recorded.

import { useSignal } from "@preact/signals";
import { useMemo } from "preact/hooks";
import * as format from "../format";
import { DrawnGraph } from "../graph/graph";
import { Bar, Empty, Panel, Places, marking } from "../parts/small";
import { type Column, Table } from "../parts/table";
import type { EagerCall, Graph, Tape } from "../recording";
import { go, index, route } from "../state";

export function Eager() {
  const { eager, tapes } = index.value!.recording;
  if (!eager.length && !tapes.length) {
    return (
      <Empty title="No eager operator was recorded">
        Every operator ran inside compiled code, or eager operators were left out. Record a program that calls operators outside
        of torch.compile.
      </Empty>
    );
  }
  const { panel } = route.value;
  const tape = tapes[Number(panel.replace("tape", ""))];
  const shown = panel.startsWith("tape") && tape ? tape : eager.length ? null : tapes[0]!;
  return (
    <div class="unit-frame">
      <div class="unit-bar">
        <nav class="strip" aria-label="Parts">
          {eager.length > 0 && (
            <button aria-current={shown ? undefined : "step"} onClick={() => go({ panel: "operators" })}>
              operators
            </button>
          )}
          {tapes.map((each, at) => (
            <button key={at} aria-current={shown === each ? "step" : undefined} onClick={() => go({ panel: `tape${at}` })}>
              {each.title}
            </button>
          ))}
        </nav>
      </div>
      <div class="unit-body">{shown ? <TapeView key={panel} tape={shown} /> : <Operators calls={eager} />}</div>
    </div>
  );
}

function Operators({ calls }: { calls: EagerCall[] }) {
  const chosen = useSignal<EagerCall | null>(null);
  const shown = chosen.value && calls.includes(chosen.value) ? chosen.value : calls[0]!;
  const columns = useMemo((): Column<EagerCall>[] => {
    const largest = Math.max(...calls.map((call) => call.seconds));
    return [
      { title: "Operator", width: "minmax(110px, 1.4fr)", cell: (call) => call.operator, by: (call) => call.operator },
      { title: "Line", width: "minmax(90px, 1fr)", cell: (call) => <Places places={call.places.slice(-1)} /> },
      {
        title: "Calls",
        numeric: true,
        width: "44px",
        cell: (call) => <span class="number">{call.count}</span>,
        by: (call) => call.count,
      },
      {
        title: "Time",
        width: "108px",
        cell: (call) => (
          <>
            <span class="number">{format.seconds(call.seconds)}</span>
            <Bar share={call.seconds / largest} />
          </>
        ),
        by: (call) => call.seconds,
      },
    ];
  }, [calls]);
  return (
    <div class="eager-view">
      <Table
        columns={columns}
        rows={calls}
        label="Eager operators"
        placesOf={(call) => call.places}
        selected={shown}
        onSelect={(call) => (chosen.value = call)}
      />
      <Walk call={shown} />
    </div>
  );
}

function Walk({ call }: { call: EagerCall }) {
  return (
    <div class="page walk">
      <header class="head">
        <h1>{call.operator}</h1>
        <p class="faint">the first of {format.count(call.count, "call")}</p>
      </header>
      <div class="columns">
        <Panel title="Inputs">
          <ul class="plain">
            {call.inputs.map((each, at) => (
              <li key={at}>
                <code>{each}</code>
              </li>
            ))}
          </ul>
        </Panel>
        <Panel title="Outputs">
          <ul class="plain">
            {call.outputs.map((each, at) => (
              <li key={at}>
                <code>{each}</code>
              </li>
            ))}
          </ul>
        </Panel>
      </div>
      <Panel title="Through the dispatcher" aside="the highest key that is left chooses the kernel">
        <ol class="dispatch">
          {call.steps.map((step, at) => (
            <li key={at} style={{ marginLeft: `${step.depth * 22}px` }}>
              <div class="keys">
                {step.keys.map((key) => (
                  <span key={key} class={key === step.key ? "chosen" : ""}>
                    {key}
                  </span>
                ))}
              </div>
              <div>
                <span class="arrow">↳</span> <b>{step.key}</b> <code>{step.kernel}</code>
              </div>
            </li>
          ))}
        </ol>
        {!call.steps.length && <p class="faint">The walk was not recorded for this operator.</p>}
      </Panel>
    </div>
  );
}

function TapeView({ tape }: { tape: Tape }) {
  const graph = useMemo(() => graphOf(tape), [tape]);
  const kernels = useMemo(() => tape.nodes.map(() => null), [tape]);
  const saving = tape.nodes
    .map((node, at) => ({ node, at, bytes: node.saved.reduce((sum, each) => sum + each[2], 0) }))
    .filter(({ bytes }) => bytes > 0);
  saving.sort((a, b) => b.bytes - a.bytes);
  return (
    <div class="tape">
      <DrawnGraph graph={graph} kernels={kernels} label={`Tape of ${tape.title}`} />
      <aside class="page">
        <header class="head">
          <h1>{tape.title}</h1>
          <p class="faint">
            {format.count(tape.nodes.length, "node")}, {format.bytes(tape.bytes)} saved for backward
          </p>
        </header>
        <Panel title="Saved tensors" aside="largest first">
          {saving.map(({ node, at, bytes }) => (
            <SavedNode key={at} node={node} bytes={bytes} most={saving[0]!.bytes} />
          ))}
          {!saving.length && <p class="faint">No node saved anything.</p>}
        </Panel>
      </aside>
    </div>
  );
}

function SavedNode({ node, bytes, most }: { node: Tape["nodes"][number]; bytes: number; most: number }) {
  const { level, handlers } = marking(node.places);
  return (
    <div class={`saved ${level}`} {...handlers}>
      <div>
        <b>{node.name}</b> <span class="number">{format.bytes(bytes)}</span> <Bar share={bytes / most} />
      </div>
      {node.saved.map(([name, detail, size], at) => (
        <div key={at} class="faint">
          <code>{name}</code> {detail} <span class="number">{format.bytes(size)}</span>
        </div>
      ))}
      <Places places={node.places} />
    </div>
  );
}

function graphOf(tape: Tape): Graph {
  const nodes = tape.nodes.map((node) => {
    const saved = node.saved.reduce((sum, each) => sum + each[2], 0);
    return {
      name: node.name,
      label: node.name,
      kind: "call" as const,
      detail: saved ? `saves ${format.bytes(saved)}` : "",
      places: node.places,
      path: [],
      line: null,
      kernel: null,
    };
  });
  return { nodes, edges: tape.edges };
}
