// Where the time of a call goes: kernel by kernel, and added up to lines, modules and graphs.

import { useSignal } from "@preact/signals";
import { useMemo } from "preact/hooks";
import * as format from "../format";
import { type Index, type KernelEntry, lineText } from "../indices";
import { Bar, Empty, Panel, PlaceLink, Places } from "../parts/small";
import { Roofline } from "../parts/roofline";
import { type Column, Table } from "../parts/table";
import { index } from "../state";
import { openKernel } from "../parts/open_kernel";
import { type Sum, byGraph, byLine, byModule } from "./sums";

export function Time() {
  const found = index.value!;
  const timed = useMemo(() => found.kernels.filter(({ kernel }) => kernel.calls > 0 || kernel.seconds > 0), [found]);
  if (!timed.length) {
    return (
      <Empty title="No kernel was timed">
        Times need a compiled function that is called at least once more after the call that compiles it. Call it twice, and record again.
      </Empty>
    );
  }
  return (
    <div class="time">
      <Balance found={found} />
      <div class="time-top">
        <Panel title="Kernels" aside={format.count(timed.length, "kernel")} class="fill"><KernelTimes rows={timed} found={found} /></Panel>
        <Panel title="Roofline" aside="operations per byte, and per second" class="fill"><Roofline entries={timed} machine={found.recording.machine} /></Panel>
      </div>
      <Sums found={found} />
    </div>
  );
}

/** The measured calls: how much of each is in kernels. */
function Balance({ found }: { found: Index }) {
  const calls = found.recording.calls.filter((call) => call.timed);
  return (
    <div class="balance">
      {calls.map((call, at) => {
        const kernels = found.kernels.filter(({ unit }) => unit.id === call.unit).reduce((sum, { kernel }) => sum + kernel.seconds, 0);
        const share = kernels / call.seconds;
        return (
          <div key={at}>
            <b>{call.name}</b> one call {format.seconds(call.seconds)}
            <span class="flame small"><i class="inside" style={{ flexGrow: share }} /><i class="around" style={{ flexGrow: Math.max(1 - share, 0) }} /></span>
            {format.seconds(kernels)} in kernels ({format.percent(share)}), {format.seconds(Math.max(call.seconds - kernels, 0))} around them
          </div>
        );
      })}
      {!calls.length && <div>{format.seconds(found.kernelSeconds)} in kernels; the call around them was not measured.</div>}
    </div>
  );
}

function KernelTimes({ rows, found }: { rows: KernelEntry[]; found: Index }) {
  const columns = useMemo((): Column<KernelEntry>[] => {
    const largest = Math.max(...rows.map(({ kernel }) => kernel.seconds));
    return [
      { title: "Kernel", width: "minmax(74px, 1fr)", cell: (row) => <button class="link" onClick={() => openKernel(row)}>{row.kernel.name}</button>, by: ({ kernel }) => kernel.name },
      { title: "Operators", width: "minmax(60px, 1.6fr)", cell: ({ kernel }) => <span title={kernel.operators.join(", ")}>{kernel.operators.join(", ")}</span> },
      { title: "Lines", width: "minmax(84px, 1.2fr)", cell: ({ kernel }) => <Places places={kernel.places.slice(0, 1)} /> },
      { title: "Time", width: "104px", cell: ({ kernel }) => <><span class="number">{format.seconds(kernel.seconds)}</span><Bar share={kernel.seconds / largest} /></>, by: ({ kernel }) => kernel.seconds },
      { title: "Part", numeric: true, width: "52px", hint: "of the time in kernels", cell: ({ kernel }) => <span class="number">{format.percent(kernel.seconds / found.kernelSeconds)}</span>, by: ({ kernel }) => kernel.seconds },
      { title: "Calls", numeric: true, width: "50px", cell: ({ kernel }) => <span class="number">{kernel.calls.toLocaleString("en")}</span>, by: ({ kernel }) => kernel.calls },
      { title: "Bytes", numeric: true, width: "70px", cell: ({ kernel }) => <span class="number">{format.bytes(kernel.bytes)}</span>, by: ({ kernel }) => kernel.bytes },
      { title: "FLOP", numeric: true, width: "66px", hint: "floating-point operations", cell: ({ kernel }) => <span class="number">{format.scaled(kernel.flops)}</span>, by: ({ kernel }) => kernel.flops },
      { title: "Of best", numeric: true, width: "62px", hint: "share of what the machine can do at its best", cell: ({ kernel }) => <span class={`number ${kernel.share < 0.25 ? "low" : ""}`}>{kernel.share ? format.percent(kernel.share) : "–"}</span>, by: ({ kernel }) => kernel.share },
    ];
  }, [rows, found]);
  return <Table columns={columns} rows={rows} label="Times of kernels" first="Time" placesOf={({ kernel }) => kernel.places} kernelOf={(row) => row} />;
}

const SUMS: [string, (found: Index) => Sum[]][] = [["Lines", byLine], ["Modules", byModule], ["Graphs", byGraph]];

function Sums({ found }: { found: Index }) {
  const chosen = useSignal("Lines");
  const rows = useMemo(() => SUMS.find(([title]) => title === chosen.value)![1](found), [found, chosen.value]);
  const choice = (
    <span class="choice" role="group" aria-label="Added up by">
      {SUMS.map(([title]) => <button key={title} aria-pressed={chosen.value === title} onClick={() => (chosen.value = title)}>{title}</button>)}
    </span>
  );
  const columns: Column<Sum>[] = [
    { title: chosen.value, width: "minmax(200px, 3fr)", cell: (row) => row.place ? <><PlaceLink place={row.place} /> <code class="faint">{lineText(found.recording, row.place)}</code></> : <span>{row.name}</span>, by: (row) => row.name },
    { title: "Kernels", numeric: true, width: "70px", cell: (row) => <span class="number">{row.kernels}</span>, by: (row) => row.kernels },
    { title: "Time", width: "minmax(160px, 1fr)", cell: (row) => <><span class="number">{format.seconds(row.seconds)}</span><Bar share={row.seconds / (rows[0]?.seconds || 1)} /></>, by: (row) => row.seconds },
    { title: "Part", numeric: true, width: "60px", cell: (row) => <span class="number">{format.percent(row.seconds / found.kernelSeconds)}</span>, by: (row) => row.seconds },
  ];
  return (
    <Panel title="Added up" aside={choice} class="fill sums">
      {rows.length
        ? <Table key={chosen.value} columns={columns} rows={rows} label={`Time by ${chosen.value}`} placesOf={(row) => row.places} />
        : <p class="faint">No graph of this recording knows its modules: what was compiled is no module, or its parts have no names.</p>}
    </Panel>
  );
}
