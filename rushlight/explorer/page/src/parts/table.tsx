// A sortable table that renders only the rows on the screen.

import { useSignal } from "@preact/signals";
import type { ComponentChildren } from "preact";
import { useEffect, useMemo, useRef } from "preact/hooks";
import type { KernelEntry } from "../indices";
import type { Place } from "../recording";
import { marking } from "./small";

export interface Column<Row> {
  title: string;
  /** The width in CSS grid syntax: "90px", "minmax(80px, 1fr)". */
  width: string;
  cell: (row: Row) => ComponentChildren;
  /** The value that the column sorts by; numbers are sorted in descending order. */
  by?: (row: Row) => number | string;
  hint?: string;
  /** Whether all cells are numbers, which are aligned to the right. */
  numeric?: boolean;
}

interface Properties<Row> {
  columns: Column<Row>[];
  rows: Row[];
  label: string;
  placesOf?: (row: Row) => Place[];
  kernelOf?: (row: Row) => KernelEntry | null;
  selected?: Row | null;
  onSelect?: (row: Row) => void;
  /** The column that the table is sorted by at first; none keeps the given order. */
  first?: string;
}

const HEIGHT = 28; // a row's height in pixels, as in the styles
const MARGIN = 8; // rows drawn beyond the edges

export function Table<Row>(properties: Properties<Row>) {
  const { columns, rows, label, selected, onSelect } = properties;
  const sort = useSignal<{ title: string; down: boolean } | null>(
    properties.first ? { title: properties.first, down: true } : null,
  );
  const body = useRef<HTMLDivElement>(null);
  const range = useSignal({ from: 0, to: 60 });
  const { title: sorted, down } = sort.value ?? { title: "", down: true };
  const ordered = useMemo(
    () =>
      sortRows(
        rows,
        columns.find((column) => column.title === sorted),
        down,
      ),
    [rows, sorted, down],
  );
  const template = columns.map((column) => column.width).join(" ");

  const measure = () => {
    const element = body.current;
    if (!element) return;
    const from = Math.max(0, Math.floor(element.scrollTop / HEIGHT) - MARGIN);
    const to = Math.ceil((element.scrollTop + element.clientHeight) / HEIGHT) + MARGIN;
    if (from !== range.peek().from || to !== range.peek().to) range.value = { from, to };
  };
  useEffect(() => {
    const observer = new ResizeObserver(measure);
    observer.observe(body.current!);
    return () => observer.disconnect();
  }, []);
  useEffect(() => {
    const at = selected ? ordered.indexOf(selected) : -1;
    const element = body.current!;
    if (at >= 0 && (at * HEIGHT < element.scrollTop || (at + 1) * HEIGHT > element.scrollTop + element.clientHeight)) {
      element.scrollTop = at * HEIGHT - element.clientHeight / 2;
    }
  }, [selected]);

  const toggle = (column: Column<Row>) => {
    if (column.by) sort.value = { title: column.title, down: sorted === column.title ? !down : true };
  };
  return (
    <div class="table" role="table" aria-label={label} aria-rowcount={rows.length}>
      <div class="table-head" role="row" style={{ gridTemplateColumns: template }}>
        {columns.map((column) => (
          <span
            key={column.title}
            role="columnheader"
            class={column.numeric ? "numeric" : ""}
            aria-sort={sorted === column.title ? (down ? "descending" : "ascending") : "none"}
          >
            <button title={column.hint} disabled={!column.by} onClick={() => toggle(column)}>
              {column.title}
              {sorted === column.title && <i>{down ? "▾" : "▴"}</i>}
            </button>
          </span>
        ))}
      </div>
      <div class="table-body" ref={body} onScroll={measure}>
        <div style={{ height: `${ordered.length * HEIGHT}px`, position: "relative" }}>
          {ordered.slice(range.value.from, range.value.to).map((row, at) => (
            <TableRow
              key={range.value.from + at}
              top={(range.value.from + at) * HEIGHT}
              template={template}
              columns={columns}
              row={row}
              places={properties.placesOf?.(row) ?? []}
              kernel={properties.kernelOf?.(row) ?? null}
              selected={row === selected}
              onSelect={onSelect}
            />
          ))}
        </div>
      </div>
    </div>
  );
}

interface RowProperties<Row> {
  top: number;
  template: string;
  columns: Column<Row>[];
  row: Row;
  places: Place[];
  kernel: KernelEntry | null;
  selected: boolean;
  onSelect?: (row: Row) => void;
}

function TableRow<Row>({ top, template, columns, row, places, kernel, selected, onSelect }: RowProperties<Row>) {
  const { level, handlers } = marking(places, kernel);
  const click = () => {
    handlers.onClick();
    onSelect?.(row);
  };
  return (
    <div
      class={`row ${level}`}
      role="row"
      aria-selected={selected}
      style={{ top: `${top}px`, gridTemplateColumns: template }}
      {...handlers}
      onClick={click}
    >
      {columns.map((column) => (
        <span key={column.title} role="cell" class={column.numeric ? "numeric" : ""}>
          {column.cell(row)}
        </span>
      ))}
    </div>
  );
}

function sortRows<Row>(rows: Row[], column: Column<Row> | undefined, down: boolean): Row[] {
  const by = column?.by;
  if (!by) return rows;
  const compare = (a: number | string, b: number | string) =>
    typeof a === "number" && typeof b === "number" ? b - a : String(a).localeCompare(String(b));
  return [...rows].sort((a, b) => compare(by(a), by(b)) * (down ? 1 : -1));
}
