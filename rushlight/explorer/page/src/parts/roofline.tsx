// The roofline chart: kernels by operations per byte and operations per second, below the machine's limits.

import { useMemo } from "preact/hooks";
import * as format from "../format";
import type { KernelEntry } from "../indices";
import type { Kernel, Machine } from "../recording";
import { openKernel } from "./open_kernel";
import { hover, markOf, togglePin } from "../marks";
import { useMarkedGroup } from "./marked_group";
import { useSize } from "./size";

const EDGE = { left: 82, right: 14, top: 12, bottom: 38 };

export function Roofline({ entries, machine }: { entries: KernelEntry[]; machine: Machine }) {
  const [frame, { width, height }] = useSize();
  const shown = useMemo(
    () => entries.filter(({ kernel }) => kernel.flops > 0 && kernel.bytes > 0 && kernel.seconds > 0),
    [entries],
  );
  if (!shown.length) return <p class="faint">No timed kernel has both bytes and operations counted.</p>;
  return (
    <div ref={frame} class="roofline">
      {width > 0 && <Drawing entries={shown} machine={machine} width={width} height={height} />}
    </div>
  );
}

function decades(values: number[]): [number, number] {
  return [Math.floor(Math.log10(Math.min(...values))), Math.ceil(Math.log10(Math.max(...values)) + 1e-9)];
}

function Drawing({
  entries,
  machine,
  width,
  height,
}: {
  entries: KernelEntry[];
  machine: Machine;
  width: number;
  height: number;
}) {
  const { bandwidth, flops } = machine;
  const marked = useMemo(() => entries.map((entry) => ({ places: entry.kernel.places, kernel: entry })), [entries]);
  const dots = useMarkedGroup(marked);
  const intensity = entries.map(({ kernel }) => kernel.flops / kernel.bytes);
  const speeds = entries.map(({ kernel }) => kernel.flops / kernel.seconds);
  const ridge = bandwidth && flops ? flops / bandwidth : null;
  const [left, right] = decades([...intensity, ...(ridge ? [ridge, ridge * 4] : [])]);
  const [low, high] = decades([...speeds, ...(flops ? [flops] : [])]);
  const x = (value: number) => EDGE.left + ((Math.log10(value) - left) / (right - left)) * (width - EDGE.left - EDGE.right);
  const y = (value: number) => EDGE.top + ((high - Math.log10(value)) / (high - low)) * (height - EDGE.top - EDGE.bottom);
  const most = Math.max(...entries.map(({ kernel }) => kernel.seconds));
  return (
    <svg class="chart" width={width} height={height} role="img" aria-label="Roofline of the kernels">
      {range(low, high).map((decade) => (
        <g key={`y${decade}`}>
          <line class="grid" x1={EDGE.left} x2={width - EDGE.right} y1={y(10 ** decade)} y2={y(10 ** decade)} />
          <text class="tick" x={EDGE.left - 6} y={y(10 ** decade) + 4} text-anchor="end">
            {format.scaled(10 ** decade)}FLOP/s
          </text>
        </g>
      ))}
      {range(left, right).map((decade) => (
        <g key={`x${decade}`}>
          <line class="grid" x1={x(10 ** decade)} x2={x(10 ** decade)} y1={EDGE.top} y2={height - EDGE.bottom} />
          <text class="tick" x={x(10 ** decade)} y={height - EDGE.bottom + 15} text-anchor="middle">
            {10 ** decade}
          </text>
        </g>
      ))}
      <text class="tick" x={(EDGE.left + width) / 2} y={height - 5} text-anchor="middle">
        operations per byte moved
      </text>
      {ridge && (
        <path
          class="roof"
          d={roof(bandwidth!, flops!, ridge, 10 ** left, 10 ** right, 10 ** low)
            .map(([a, b], at) => `${at ? "L" : "M"}${x(a)},${y(b)}`)
            .join("")}
        >
          <title>{`the machine's best: ${format.bytes(bandwidth!)}/s, ${format.scaled(flops!)}FLOP/s`}</title>
        </path>
      )}
      <g ref={dots}>
        {entries.map((entry, at) => (
          <Dot
            key={at}
            entry={entry}
            x={x(intensity[at]!)}
            y={y(speeds[at]!)}
            size={3 + 7 * Math.sqrt(entry.kernel.seconds / most)}
          />
        ))}
      </g>
    </svg>
  );
}

/** The roof: memory bounds the left part, arithmetic the right part. The line begins where it enters the chart. */
function roof(bandwidth: number, flops: number, ridge: number, left: number, right: number, low: number): [number, number][] {
  const begin = Math.max(left, low / bandwidth);
  return [
    [begin, begin * bandwidth],
    [ridge, flops],
    [right, flops],
  ];
}

function range(from: number, to: number): number[] {
  return Array.from({ length: to - from + 1 }, (_, at) => from + at);
}

function Dot({ entry, x, y, size }: { entry: KernelEntry; x: number; y: number; size: number }) {
  const { kernel } = entry;
  const own = () => markOf(kernel.places, entry);
  return (
    <circle
      class="dot"
      cx={x}
      cy={y}
      r={size}
      onMouseEnter={() => hover(own())}
      onMouseLeave={() => hover(null)}
      onClick={() => togglePin(own())}
      onDblClick={() => openKernel(entry)}
    >
      <title>{titleOf(kernel)}</title>
    </circle>
  );
}

function titleOf({ name, operators, seconds, flops, bytes }: Kernel): string {
  const speeds = [`${format.scaled(flops / seconds)}FLOP/s`, `${format.bytes(bytes / seconds)}/s`];
  return `${name}: ${operators.join(", ")}\n${[format.seconds(seconds), ...speeds].join(", ")}`;
}
