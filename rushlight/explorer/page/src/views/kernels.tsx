// The kernels of a unit: the operators fused in each, why neighbours were not fused, and the C++.

import { useMemo } from "preact/hooks";
import { useSignal } from "@preact/signals";
import { Code } from "../code/code";
import * as format from "../format";
import type { KernelEntry } from "../indices";
import { kernelsOf, pinned } from "../marks";
import { AssemblyOf } from "../parts/assembly";
import { Bar, Empty, PlaceLink, Places, Toggle } from "../parts/small";
import { type Column, Table } from "../parts/table";
import type { Unit } from "../recording";
import { goToStage, index } from "../state";
import { nameWidth } from "./kernel_times";

export function Kernels({ unit }: { unit: Unit }) {
  const rows = useMemo(() => index.value!.kernels.filter((entry) => entry.unit === unit), [unit]);
  const chosen = useSignal<KernelEntry | null>(null);
  const wanted = pinned.value && kernelsOf(index.value!, pinned.value).filter((entry) => entry.unit === unit);
  const own = chosen.value?.unit === unit ? chosen.value : null;
  const shown = (wanted?.length && !(own && wanted.includes(own)) ? wanted[0] : own) ?? rows[0] ?? null;
  const columns = useMemo(() => kernelColumns(rows), [rows]);
  return (
    <div class="kernels">
      <Table
        columns={columns}
        rows={rows}
        label="Kernels"
        placesOf={(row) => row.kernel.places}
        kernelOf={(row) => row}
        selected={shown}
        onSelect={(row) => (chosen.value = row)}
      />
      {shown && <Detail key={`${unit.id} ${shown.index}`} entry={shown} />}
    </div>
  );
}

function kernelColumns(rows: KernelEntry[]): Column<KernelEntry>[] {
  const largest = Math.max(...rows.map(({ kernel }) => kernel.seconds), 0);
  const graphs = new Set(rows.map(({ kernel }) => kernel.graph)).size > 1;
  const columns: (Column<KernelEntry> | false)[] = [
    {
      title: "Kernel",
      width: `${nameWidth(rows) + 20}px`,
      cell: ({ kernel, index }) => (
        <>
          <i class={`swatch colour-${index % 10}`} /> <span title={kernel.name}>{kernel.name}</span>
        </>
      ),
      by: ({ index }) => -index,
    },
    graphs && {
      title: "Graph",
      width: "80px",
      cell: ({ kernel }) => <span class="faint">{kernel.graph}</span>,
      by: ({ kernel }) => kernel.graph,
    },
    {
      title: "Operators",
      width: "minmax(120px, 2fr)",
      cell: ({ kernel }) => <span title={kernel.operators.join(", ")}>{kernel.operators.join(", ")}</span>,
      by: ({ kernel }) => kernel.operators.length,
    },
    { title: "Lines", width: "minmax(110px, 1.4fr)", cell: ({ kernel }) => <Places places={kernel.places} /> },
    largest > 0 && {
      title: "Time",
      width: "110px",
      cell: ({ kernel }) => (
        <>
          <span class="number">{format.seconds(kernel.seconds)}</span>
          <Bar share={kernel.seconds / largest} />
        </>
      ),
      by: ({ kernel }) => kernel.seconds,
    },
  ];
  return columns.filter((column) => column !== false);
}

function Detail({ entry }: { entry: KernelEntry }) {
  const { kernel } = entry;
  return (
    <div class="kernel">
      <header class="stage-bar">
        <h2>
          <i class={`swatch colour-${entry.index % 10}`} /> {kernel.name}
        </h2>
        <span class="tag">{kernel.graph}</span>
        {kernel.calls > 0 && (
          <span class="faint">
            {format.seconds(kernel.seconds)} in {format.count(kernel.calls, "call")}
          </span>
        )}
        <span class="space" />
        {kernel.code && <button onClick={() => goToStage(kernel.code![0], kernel.code![1])}>In its file</button>}
      </header>
      <div class="kernel-body">
        <div class="kernel-facts">
          <h4>Operators that became it</h4>
          <p class="chips">
            {kernel.operators.map((name, at) => (
              <code key={at}>{name}</code>
            ))}
          </p>
          <h4>Lines that it comes from</h4>
          {kernel.places.map((place) => (
            <div key={place}>
              <PlaceLink place={place} text />
            </div>
          ))}
          {kernel.buffers.length > 0 && (
            <>
              <h4>Buffers that it calculates</h4>
              <p class="chips">
                {kernel.buffers.map((name) => (
                  <code key={name}>{name}</code>
                ))}
              </p>
            </>
          )}
          {kernel.apart.length > 0 && (
            <>
              <h4>Why it begins a kernel of its own</h4>
              <ul class="apart">
                {kernel.apart.map((why, at) => (
                  <li key={at}>{why}</li>
                ))}
              </ul>
            </>
          )}
        </div>
        <KernelCode entry={entry} />
      </div>
    </div>
  );
}

function KernelCode({ entry }: { entry: KernelEntry }) {
  const assembly = useSignal(false);
  const { kernel } = entry;
  const stage = kernel.code && index.value!.stages.get(kernel.code[0])?.stage;
  const text = useMemo(
    () =>
      stage
        ? stage.text
            .split("\n")
            .slice(kernel.code![1] - 1, kernel.code![2])
            .join("\n")
        : "",
    [entry],
  );
  const blocks = useMemo(() => [{ first: 1, last: text.split("\n").length, places: kernel.places, kernel: entry }], [entry]);
  if (!stage) return <Empty title="No code">The recording does not know this kernel's C++: it is a call into a library.</Empty>;
  return (
    <div class="kernel-code">
      <div class="caption">
        C++{" "}
        <span class="faint">
          {stage.title}, lines {kernel.code![1]}–{kernel.code![2]}
        </span>
        <span class="space" />
        {kernel.assembly ? (
          <Toggle on={assembly.value} onChange={(on) => (assembly.value = on)}>
            Assembly
          </Toggle>
        ) : (
          <span class="faint" title="The compiler put the kernel into its caller, or there is no objdump">no assembly of its own</span>
        )}
      </div>
      <div class="kernel-texts">
        <Code text={text} language="cpp" blocks={blocks} begins={kernel.code![1]} label={`C++ of ${kernel.name}`} />
        {assembly.value && <AssemblyOf entry={entry} />}
      </div>
    </div>
  );
}
