// Kernels with their times, compared to the machine's limits.

import { useMemo } from "preact/hooks";
import * as format from "../format";
import type { Index, KernelEntry } from "../indices";
import { openKernel } from "../parts/open_kernel";
import { Bar, Places } from "../parts/small";
import { useSize } from "../parts/size";
import { type Column, Table } from "../parts/table";

const MOST_OF_NAME = 28; // characters of a kernel's name for which the column always has room
const PER_CHARACTER = 7.3; // pixels, in a table
const LEAST_OPERATORS = 90; // a narrower column says nothing; the names' tooltips have the operators, too
const OTHERS = 574; // pixels of all columns but names and operators, with the gaps between them

/** The pixels that a column of kernels' names needs. */
export function nameWidth(rows: KernelEntry[]): number {
  const longest = rows.reduce((most, { kernel }) => Math.max(most, kernel.name.length), 0);
  return Math.ceil(Math.min(longest, MOST_OF_NAME) * PER_CHARACTER) + 4;
}

export function KernelTimes({ rows, found }: { rows: KernelEntry[]; found: Index }) {
  const [frame, { width }] = useSize();
  const hasRoom = width >= OTHERS + nameWidth(rows) + LEAST_OPERATORS;
  const columns = useMemo((): Column<KernelEntry>[] => {
    const largest = Math.max(...rows.map(({ kernel }) => kernel.seconds));
    const all: (Column<KernelEntry> | false)[] = [
      {
        title: "Kernel",
        width: `minmax(${nameWidth(rows)}px, 1fr)`,
        cell: (row) => (
          <button class="link" title={titleOf(row)} onClick={() => openKernel(row)}>
            {row.kernel.name}
          </button>
        ),
        by: ({ kernel }) => kernel.name,
      },
      hasRoom && {
        title: "Operators",
        width: `minmax(${LEAST_OPERATORS}px, 1.6fr)`,
        cell: ({ kernel }) => <span title={kernel.operators.join(", ")}>{kernel.operators.join(", ")}</span>,
      },
      { title: "Lines", width: "minmax(60px, 1fr)", cell: ({ kernel }) => <Places places={kernel.places.slice(0, 1)} /> },
      {
        title: "Time",
        width: "90px",
        cell: ({ kernel }) => (
          <>
            <span class="number">{format.seconds(kernel.seconds)}</span>
            <Bar share={kernel.seconds / largest} />
          </>
        ),
        by: ({ kernel }) => kernel.seconds,
      },
      {
        title: "Part",
        numeric: true,
        width: "52px",
        hint: "of the time in kernels",
        cell: ({ kernel }) => <span class="number">{format.percent(kernel.seconds / found.kernelSeconds)}</span>,
        by: ({ kernel }) => kernel.seconds,
      },
      {
        title: "Calls",
        numeric: true,
        width: "50px",
        cell: ({ kernel }) => <span class="number">{kernel.calls.toLocaleString("en")}</span>,
        by: ({ kernel }) => kernel.calls,
      },
      {
        title: "Bytes",
        numeric: true,
        width: "64px",
        cell: ({ kernel }) => <span class="number">{format.bytes(kernel.bytes)}</span>,
        by: ({ kernel }) => kernel.bytes,
      },
      {
        title: "FLOP",
        numeric: true,
        width: "60px",
        hint: "floating-point operations",
        cell: ({ kernel }) => <span class="number">{format.scaled(kernel.flops)}</span>,
        by: ({ kernel }) => kernel.flops,
      },
      {
        title: "Of best",
        numeric: true,
        width: "62px",
        hint:
          "share of what a copy or a matrix product reaches on this machine; more than 100% where data comes from the caches, " +
          "or where other programs ran while that was measured",
        cell: ({ kernel }) => (
          <span class={`number ${kernel.share < 0.25 ? "low" : ""}`}>{kernel.share ? format.shareOfBest(kernel.share) : "–"}</span>
        ),
        by: ({ kernel }) => kernel.share,
      },
    ];
    return all.filter((column) => column !== false);
  }, [rows, found, hasRoom]);
  return (
    <div ref={frame} class="table-frame">
      <Table
        columns={columns}
        rows={rows}
        label="Times of kernels"
        first="Time"
        placesOf={({ kernel }) => kernel.places}
        kernelOf={(row) => row}
      />
    </div>
  );
}

function titleOf({ kernel }: KernelEntry): string {
  return `${kernel.name}: ${kernel.operators.join(", ")}`;
}
