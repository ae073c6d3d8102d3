// The overview: the recorded units, and advice on where to look first.

import * as format from "../format";
import type { Index } from "../indices";
import { markOf, pinned } from "../marks";
import { CallsChart } from "../parts/calls_chart";
import { Empty, Panel, PlaceLink } from "../parts/small";
import type { Recording, Unit } from "../recording";
import { go, index } from "../state";
import { WhereToLook, distinctBreaks } from "./advice";
import { CompileTimes } from "./compile_times";
import { kernelSeconds, longestRuns, runCount, sentence } from "./facts";

export function Overview() {
  const found = index.value!;
  const { recording } = found;
  return (
    <div class="page overview">
      <Head recording={recording} />
      {recording.error && (
        <Panel title="The program ended with an error" class="bad">
          <pre>{recording.error}</pre>
        </Panel>
      )}
      {recording.notes.length > 0 && (
        <Panel title="What this recording lacks" class="note">
          <ul>
            {recording.notes.map((note, at) => (
              <li key={at}>{note}</li>
            ))}
          </ul>
        </Panel>
      )}
      <Numbers found={found} />
      <div class="columns">
        <WhereToLook found={found} />
        <Units recording={recording} />
      </div>
      {recording.calls.length > 0 ? (
        <CallsChart calls={recording.calls} onPick={(call) => call.unit !== null && openUnit(found.units.get(call.unit))} />
      ) : (
        <Panel title="Calls">
          <Empty title="No calls">No compiled function was called while this was recorded.</Empty>
        </Panel>
      )}
      <CompileTimes calls={recording.calls} />
      {recording.output && (
        <Panel title="Output" aside="its end">
          <pre class="output">{recording.output}</pre>
        </Panel>
      )}
    </div>
  );
}

function Head({ recording }: { recording: Recording }) {
  const { processor, threads, python, rushlight, bandwidth, flops } = recording.machine;
  const facts = [
    processor,
    format.count(threads, "thread"),
    python && `Python ${python}`,
    rushlight && `Rushlight ${rushlight}`,
    bandwidth && `${format.bytes(bandwidth)}/s`,
    flops && `${format.scaled(flops)}FLOP/s`,
  ].filter(Boolean);
  return (
    <header class="head">
      <h1>{recording.title || recording.command}</h1>
      {recording.command && recording.command !== recording.title && <code>{recording.command}</code>}
      <p class="faint">{[recording.made.replace("T", " "), ...facts].filter(Boolean).join(" · ")}</p>
    </header>
  );
}

function Numbers({ found }: { found: Index }) {
  const { units } = found.recording;
  const breaks = distinctBreaks(units).length;
  const again = units.filter((unit) => unit.recompile).length;
  const compiling = units.reduce((sum, unit) => sum + unit.seconds, 0);
  const runs = runCount(found.recording);
  const longest = longestRuns(found.recording);
  const numbers: [string, string, string][] = [
    [String(units.length), units.length === 1 ? "compiled unit" : "compiled units", ""],
    [String(breaks), breaks === 1 ? "graph break" : "graph breaks", breaks ? "bad" : ""],
    [String(again), again === 1 ? "recompile" : "recompiles", again ? "warn" : ""],
    [found.kernels.length.toLocaleString("en"), found.kernels.length === 1 ? "kernel" : "kernels", ""],
    [format.seconds(compiling), "compiling", ""],
    [runs.toLocaleString("en"), runs === 1 ? "run of a graph" : "runs of graphs", ""],
  ];
  if (longest) numbers.push([format.seconds(longest.median), `a run of ${longest.name} (median)`, ""]);
  return (
    <div class="numbers">
      {numbers.map(([number, title, tone]) => (
        <div key={title} class={tone}>
          <b>{number}</b>
          <span>{title}</span>
        </div>
      ))}
    </div>
  );
}

function Units({ recording }: { recording: Recording }) {
  if (!recording.units.length) {
    return (
      <Panel title="Compiled units">
        <Empty title="Nothing was compiled">No function under torch.compile was called, and no TorchScript was run.</Empty>
      </Panel>
    );
  }
  return (
    <Panel title="Compiled units" aside={format.count(recording.units.length, "unit")}>
      <ul class="units">
        {recording.units.map((unit) => (
          <li key={unit.id}>
            <button class="unit" onClick={() => openUnit(unit)}>
              <Status unit={unit} />
              <b>{unit.name}</b>
              {unit.recompile && <span class="tag warn">again</span>}
              {kernelSeconds(unit) > 0 && <span class="number">{format.seconds(kernelSeconds(unit))} in kernels</span>}
            </button>
            <p>
              {sentence(unit)} {unit.place && <PlaceLink place={unit.place} />}
            </p>
          </li>
        ))}
      </ul>
    </Panel>
  );
}

function Status({ unit }: { unit: Unit }) {
  if (unit.breaks.length) return <span class="badge has-breaks">breaks</span>;
  return <span class={`badge status-${unit.status}`}>{unit.status}</span>;
}

function openUnit(unit: Unit | undefined): void {
  if (!unit) return;
  go({ view: unit.kind === "script" ? "TorchScript" : "Capture", unit: unit.id });
  if (unit.place) pinned.value = markOf([unit.place]);
}
