// Chart of calls over time: start and duration of each call, on a logarithmic scale.

import * as format from "../format";
import type { Call } from "../recording";
import { Panel } from "./small";
import { useSize } from "./size";

const HEIGHT = 190;
const EDGE = { left: 58, right: 14, top: 12, bottom: 26 };
const MAX_POINTS = 1500;

const SHAPES: Record<string, string> = {
  compile: "M-5,-5h10v10h-10z",
  recompile: "M0,-6L6,0L0,6L-6,0z",
  kept: "M0,-5.5L5.5,4.5H-5.5z",
  hit: "M-3,0a3,3 0 1,0 6,0a3,3 0 1,0 -6,0",
  pack: "M-5,0h10M0,-5v10",
  eager: "M-4,-4L4,4M4,-4L-4,4",
};
const TITLES: Record<string, string> = {
  compile: "compiled",
  recompile: "compiled again",
  kept: "found in the cache",
  hit: "ran what was compiled",
  pack: "packed the weights",
  eager: "ran as Python",
};

export function CallsChart({ calls, onPick }: { calls: Call[]; onPick: (call: Call) => void }) {
  const [frame, { width }] = useSize();
  const kinds = Object.keys(SHAPES).filter((kind) => calls.some((call) => call.kind === kind));
  return (
    <Panel title="Calls" aside={<Key kinds={kinds} />}>
      <div ref={frame}>{width > 0 && <Drawing calls={thinned(calls)} width={width} onPick={onPick} />}</div>
    </Panel>
  );
}

function Key({ kinds }: { kinds: string[] }) {
  return (
    <span class="key-list">
      {kinds.map((kind) => (
        <span key={kind}>
          <svg width="14" height="14" viewBox="-7 -7 14 14">
            <path class={`call-point ${kind}`} d={SHAPES[kind]} />
          </svg>{" "}
          {TITLES[kind]}
        </span>
      ))}
    </span>
  );
}

/** If there are very many calls, keep the longest one of each stretch of time. */
function thinned(calls: Call[]): Call[] {
  if (calls.length <= MAX_POINTS) return calls;
  const stretch = calls.length / MAX_POINTS;
  return Array.from({ length: MAX_POINTS }, (_, at) => {
    const part = calls.slice(Math.floor(at * stretch), Math.floor((at + 1) * stretch));
    return part.reduce((most, call) => (call.seconds > most.seconds ? call : most));
  });
}

function Drawing({ calls, width, onPick }: { calls: Call[]; width: number; onPick: (call: Call) => void }) {
  const times = calls.map((call) => Math.max(call.seconds, 1e-7));
  const [low, high] = [Math.floor(Math.log10(Math.min(...times))), Math.ceil(Math.log10(Math.max(...times)) + 1e-9)];
  const end = Math.max(...calls.map((call) => call.at + call.seconds), 1e-6);
  const x = (at: number) => EDGE.left + (at / end) * (width - EDGE.left - EDGE.right);
  const y = (spent: number) =>
    EDGE.top + ((high - Math.log10(Math.max(spent, 1e-7))) / Math.max(high - low, 1)) * (HEIGHT - EDGE.top - EDGE.bottom);
  const decades = Array.from({ length: high - low + 1 }, (_, at) => low + at);
  return (
    <svg class="chart" width={width} height={HEIGHT} role="img" aria-label="Calls over time">
      {decades.map((decade) => (
        <g key={decade}>
          <line class="grid" x1={EDGE.left} x2={width - EDGE.right} y1={y(10 ** decade)} y2={y(10 ** decade)} />
          <text class="tick" x={EDGE.left - 8} y={y(10 ** decade) + 4} text-anchor="end">
            {format.seconds(10 ** decade)}
          </text>
        </g>
      ))}
      {[0, 0.25, 0.5, 0.75, 1].map((part) => (
        <text
          key={part}
          class="tick"
          x={x(end * part)}
          y={HEIGHT - 8}
          text-anchor={part === 0 ? "start" : part === 1 ? "end" : "middle"}
        >
          {format.seconds(end * part)}
        </text>
      ))}
      {calls.map((call, at) => (
        <path
          key={at}
          class={`call-point ${call.kind} ${call.timed ? "timed" : ""}`}
          d={SHAPES[call.kind] ?? SHAPES.hit}
          onClick={() => onPick(call)}
          transform={`translate(${x(call.at)},${y(call.seconds)})`}
        >
          <title>{titleOf(call)}</title>
        </path>
      ))}
    </svg>
  );
}

function titleOf({ name, kind, seconds, timed }: Call): string {
  const measured = timed ? ", kernels measured" : "";
  return `${name}: ${TITLES[kind] ?? kind}, ${format.seconds(seconds)}${measured}`;
}
