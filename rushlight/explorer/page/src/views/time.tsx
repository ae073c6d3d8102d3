// The time of a call: by kernel, and summed by line, module and graph.

import { useSignal } from "@preact/signals";
import { useMemo } from "preact/hooks";
import * as format from "../format";
import { type Index, lineText } from "../indices";
import { Bar, Empty, Panel, PlaceLink } from "../parts/small";
import { Roofline } from "../parts/roofline";
import { type Column, Table } from "../parts/table";
import type { InterpretedRuns } from "../recording";
import { index } from "../state";
import { KernelTimes } from "./kernel_times";
import { type Sum, byGraph, byLine, byModule } from "./sums";

const MOST_BALANCES = 8;

export function Time() {
  const found = index.value!;
  const timed = useMemo(() => found.kernels.filter(({ kernel }) => kernel.calls > 0 || kernel.seconds > 0), [found]);
  if (!timed.length) {
    const { interpreted } = found.recording;
    if (interpreted.length) {
      return (
        <div class="time">
          <Interpreted runs={interpreted} />
        </div>
      );
    }
    return (
      <Empty title="No kernel was timed">
        Times need a compiled function that is called at least once more after the call that compiles it. Call it twice, and
        record again.
      </Empty>
    );
  }
  return (
    <div class="time">
      <Balance found={found} />
      <div class="time-top">
        <Panel title="Kernels" aside={format.count(timed.length, "kernel")} class="fill">
          <KernelTimes rows={timed} found={found} />
        </Panel>
        <Panel title="Roofline" aside="operations per byte, and per second" class="fill">
          <Roofline entries={timed} machine={found.recording.machine} />
        </Panel>
      </div>
      <Sums found={found} />
    </div>
  );
}

/** The runs of each graph, with the share of their time in kernels. */
function Balance({ found }: { found: Index }) {
  const runs = found.recording.runs.filter(({ seconds }) => seconds > 0).sort((a, b) => b.seconds - a.seconds);
  return (
    <div class="balance">
      {runs.slice(0, MOST_BALANCES).map(({ name, calls, seconds, kernels, preparing }, at) => (
        <div key={at}>
          <b>{name}</b> {calls === 1 ? "one run" : format.count(calls, "run")}, {format.seconds(seconds)}
          <span class="flame small">
            <i class="inside" style={{ flexGrow: kernels / seconds }} />
            <i class="around" style={{ flexGrow: Math.max(1 - kernels / seconds, 0) }} />
          </span>
          {format.seconds(kernels)} in kernels ({format.percent(kernels / seconds)}),{" "}
          {format.seconds(Math.max(seconds - kernels, 0))} around them
          {preparing > 0 && `; ${format.seconds(preparing)} before them to pack the weights`}
        </div>
      ))}
      {runs.length > MOST_BALANCES && <div class="faint">and {format.count(runs.length - MOST_BALANCES, "graph")} more</div>}
      <InterpretedLines runs={found.recording.interpreted} />
      {!runs.length && <div>{format.seconds(found.kernelSeconds)} in kernels; the runs around them were not measured.</div>}
    </div>
  );
}

/** Runs without native code, where no kernel was timed at all. */
function Interpreted({ runs }: { runs: InterpretedRuns[] }) {
  return (
    <div class="balance">
      <InterpretedLines runs={runs} />
      <div class="faint">No kernel was timed: nothing that ran has native code of its own.</div>
    </div>
  );
}

function InterpretedLines({ runs }: { runs: InterpretedRuns[] }) {
  const longest = [...runs].sort((a, b) => b.seconds - a.seconds);
  return (
    <>
      {longest.slice(0, MOST_BALANCES).map(({ name, calls, seconds, native }, at) => (
        <div key={at}>
          <b>{name}</b> {calls === 1 ? "one run" : format.count(calls, "run")} in the interpreter, {format.seconds(seconds)}
          {native > 0 && `, of which ${format.seconds(native)} in compiled graphs`}
        </div>
      ))}
      {longest.length > MOST_BALANCES && (
        <div class="faint">and {format.count(longest.length - MOST_BALANCES, "function")} more in the interpreter</div>
      )}
    </>
  );
}

const SUMS: [string, (found: Index) => Sum[]][] = [
  ["Lines", byLine],
  ["Modules", byModule],
  ["Graphs", byGraph],
];

function Sums({ found }: { found: Index }) {
  const chosen = useSignal("Lines");
  const rows = useMemo(() => SUMS.find(([title]) => title === chosen.value)![1](found), [found, chosen.value]);
  const choice = (
    <span class="choice" role="group" aria-label="Added up by">
      {SUMS.map(([title]) => (
        <button key={title} aria-pressed={chosen.value === title} onClick={() => (chosen.value = title)}>
          {title}
        </button>
      ))}
    </span>
  );
  const columns: Column<Sum>[] = [
    {
      title: chosen.value,
      width: "minmax(200px, 3fr)",
      cell: (row) =>
        row.place ? (
          <>
            <PlaceLink place={row.place} /> <code class="faint">{lineText(found.recording, row.place)}</code>
          </>
        ) : (
          <span>{row.name}</span>
        ),
      by: (row) => row.name,
    },
    {
      title: "Kernels",
      numeric: true,
      width: "70px",
      cell: (row) => <span class="number">{row.kernels}</span>,
      by: (row) => row.kernels,
    },
    {
      title: "Time",
      width: "minmax(160px, 1fr)",
      cell: (row) => (
        <>
          <span class="number">{format.seconds(row.seconds)}</span>
          <Bar share={row.seconds / (rows[0]?.seconds || 1)} />
        </>
      ),
      by: (row) => row.seconds,
    },
    {
      title: "Part",
      numeric: true,
      width: "60px",
      cell: (row) => <span class="number">{format.percent(row.seconds / found.kernelSeconds)}</span>,
      by: (row) => row.seconds,
    },
  ];
  return (
    <Panel title="Added up" aside={choice} class="fill sums">
      {rows.length ? (
        <Table
          key={chosen.value}
          columns={columns}
          rows={rows}
          label={`Time by ${chosen.value}`}
          placesOf={(row) => row.places}
        />
      ) : (
        <p class="faint">
          No graph of this recording knows its modules: what was compiled is no module, or its parts have no names.
        </p>
      )}
    </Panel>
  );
}
