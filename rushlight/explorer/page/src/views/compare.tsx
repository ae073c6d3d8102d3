// Comparison of two recordings: changes in files, graphs, kernels and times.

import { signal } from "@preact/signals";
import { useMemo } from "preact/hooks";
import { Code } from "../code/code";
import * as format from "../format";
import type { Index } from "../indices";
import { readFile } from "../load";
import { Bar, Empty, Panel } from "../parts/small";
import { type Column, Table } from "../parts/table";
import type { Recording } from "../recording";
import { current, indexed, recordings, trouble } from "../state";
import { type Figure, type KernelPair, type TextPair, figures, kernelPairs, textPairs } from "./differences";

const before = signal<number | null>(null);
const after = signal<number | null>(null);
const shownText = signal("");

export function Compare() {
  const list = recordings.value;
  if (list.length < 2) {
    return (
      <Empty title="One recording is open">
        To compare, open a second one: a page that the explorer wrote, or a recording as JSON. It is read here, and goes
        nowhere. <Opener />
      </Empty>
    );
  }
  const [first, second] = [before.value ?? list.length - 2, after.value ?? list.length - 1];
  const [a, b] = [list[first] ?? list[0]!, list[second] ?? list[1]!];
  return (
    <div class="page compare">
      <header class="head choice-row">
        <Choice label="Before" list={list} chosen={first} onChoose={(at) => (before.value = at)} />
        <button title="Exchange the two" onClick={() => ([before.value, after.value] = [second, first])}>
          ⇄
        </button>
        <Choice label="After" list={list} chosen={second} onChoose={(at) => (after.value = at)} />
        <span class="space" />
        <Opener />
      </header>
      <Figures found={figures(indexed(a), indexed(b))} />
      <KernelTable before={indexed(a)} after={indexed(b)} />
      <Texts before={a} after={b} />
    </div>
  );
}

function Choice({
  label,
  list,
  chosen,
  onChoose,
}: {
  label: string;
  list: Recording[];
  chosen: number;
  onChoose: (at: number) => void;
}) {
  return (
    <label>
      <span class="faint">{label}</span>{" "}
      <select aria-label={label} value={String(chosen)} onChange={(event) => onChoose(Number(event.currentTarget.value))}>
        {list.map((each, at) => (
          <option key={at} value={String(at)}>
            {at + 1}. {each.title || each.command} · {each.made.replace("T", " ")}
          </option>
        ))}
      </select>
    </label>
  );
}

/** A file picker that adds a file's recording. */
export function Opener() {
  const open = async (input: HTMLInputElement) => {
    const file = input.files?.[0];
    if (!file) return;
    try {
      recordings.value = [...recordings.value, ...(await readFile(file))];
      after.value = recordings.value.length - 1;
      before.value = current.value === after.value ? 0 : current.value;
      trouble.value = "";
    } catch (error) {
      trouble.value = `${file.name} could not be read: ${(error as Error).message}`;
    }
  };
  return (
    <label class="opener">
      Open another page …
      <input type="file" accept=".html,.json" onChange={(event) => void open(event.currentTarget)} />
    </label>
  );
}

const UNITS = { seconds: format.seconds, bytes: format.bytes, count: (value: number) => value.toLocaleString("en") };

function Figures({ found }: { found: Figure[] }) {
  return (
    <Panel title="In numbers">
      <table class="figures">
        <thead>
          <tr>
            <th />
            <th>Before</th>
            <th>After</th>
            <th>Change</th>
          </tr>
        </thead>
        <tbody>
          {found
            .filter((figure) => figure.before || figure.after)
            .map((figure) => (
              <tr key={figure.title}>
                <th>{figure.title}</th>
                <td>{UNITS[figure.unit](figure.before)}</td>
                <td>{UNITS[figure.unit](figure.after)}</td>
                <td>
                  <Change before={figure.before} after={figure.after} />
                </td>
              </tr>
            ))}
        </tbody>
      </table>
    </Panel>
  );
}

const MIN_CHANGE = 0.02; // smaller relative differences are noise

function Change({ before, after }: { before: number; after: number }) {
  if (!before || !after) return <span class="faint">{before === after ? "–" : before ? "gone" : "new"}</span>;
  const change = after / before - 1;
  if (Math.abs(change) < MIN_CHANGE) return <span class="faint">same</span>;
  return (
    <span class={change > 0 ? "more" : "less"}>
      {change > 0 ? "▲" : "▼"} {change > 1 ? `${(change + 1).toFixed(1)}×` : format.percent(Math.abs(change))}
    </span>
  );
}

function KernelTable({ before, after }: { before: Index; after: Index }) {
  const pairs = useMemo(() => kernelPairs(before, after), [before, after]);
  if (!pairs.length)
    return (
      <Panel title="Kernels">
        <p class="faint">Neither recording has kernels.</p>
      </Panel>
    );
  const time = (entry: KernelPair["before"]) => entry?.kernel.seconds ?? 0;
  const largest = Math.max(...pairs.flatMap((pair) => [time(pair.before), time(pair.after)])) || 1;
  const shown = (entry: KernelPair["before"]) =>
    entry ? (
      <>
        <span class="number">{format.seconds(time(entry))}</span>
        <Bar share={time(entry) / largest} />
      </>
    ) : (
      <span class="faint">not there</span>
    );
  const columns: Column<KernelPair>[] = [
    {
      title: "Unit",
      width: "minmax(80px, 1fr)",
      cell: (pair) => (pair.after ?? pair.before)!.unit.name,
      by: (pair) => (pair.after ?? pair.before)!.unit.name,
    },
    {
      title: "Kernel",
      width: "minmax(120px, 1fr)",
      cell: ({ before, after }) =>
        [before?.kernel.name, after?.kernel.name].filter((name, at, all) => name && all.indexOf(name) === at).join(" → "),
    },
    {
      title: "Operators",
      width: "minmax(140px, 3fr)",
      cell: (pair) => (pair.after ?? pair.before)!.kernel.operators.join(", "),
    },
    { title: "Before", width: "130px", cell: (pair) => shown(pair.before), by: (pair) => time(pair.before) },
    { title: "After", width: "130px", cell: (pair) => shown(pair.after), by: (pair) => time(pair.after) },
    {
      title: "Change",
      width: "80px",
      cell: (pair) => <Change before={time(pair.before)} after={time(pair.after)} />,
      by: (pair) => Math.abs(time(pair.after) - time(pair.before)),
    },
  ];
  const [gone, fresh] = [pairs.filter((pair) => !pair.after).length, pairs.filter((pair) => !pair.before).length];
  return (
    <Panel
      title="Kernels"
      aside={`${pairs.length - gone - fresh} in both, ${gone} only before, ${fresh} only after`}
      class="sums"
    >
      <Table columns={columns} rows={pairs} label="Kernels of both" first="Change" />
    </Panel>
  );
}

function Texts({ before, after }: { before: Recording; after: Recording }) {
  const pairs = useMemo(() => textPairs(before, after), [before, after]);
  const key = (pair: TextPair, at: number) => `${pair.group} ${pair.title} ${at}`;
  const at = Math.max(
    pairs.findIndex((pair, place) => key(pair, place) === shownText.value),
    0,
  );
  const shown = pairs[at];
  if (!shown)
    return (
      <Panel title="Texts">
        <p class="good">All files and stages have the same text.</p>
      </Panel>
    );
  const blocks: [] = [];
  return (
    <Panel title="Files and stages that differ" aside={format.count(pairs.length, "text")} class="texts">
      <div class="texts-body">
        <nav>
          {pairs.map((pair, place) => (
            <button
              key={key(pair, place)}
              aria-current={place === at ? "true" : undefined}
              onClick={() => (shownText.value = key(pair, place))}
            >
              <span class="faint">{pair.group}</span> {pair.title}{" "}
              {!pair.before ? <b class="tag">new</b> : !pair.after ? <b class="tag">gone</b> : ""}
            </button>
          ))}
        </nav>
        <Code
          key={key(shown, at)}
          text={shown.after}
          base={shown.before}
          language={shown.language}
          blocks={blocks}
          label={`Changes in ${shown.title}`}
        />
      </div>
    </Panel>
  );
}
