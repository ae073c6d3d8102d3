// The memory plan as a chart: the arena's bytes by kernels, with the buffer that occupies them.

import { useMemo } from "preact/hooks";
import * as format from "../format";
import type { KernelEntry } from "../indices";
import { hover, markOf, togglePin } from "../marks";
import { useMarkedGroup } from "../parts/marked_group";
import { Panel } from "../parts/small";
import { useSize } from "../parts/size";
import type { Memory, Place, Unit } from "../recording";
import { index } from "../state";

const EDGE = { left: 70, right: 16, top: 10, bottom: 34 };
const LETTER_WIDTH = 7; // pixels, in buffer names

export function MemoryPlans({ unit }: { unit: Unit }) {
  return (
    <div class="page">
      {unit.memory.map((memory, at) => (
        <Plan key={at} memory={memory} unit={unit} />
      ))}
    </div>
  );
}

function Plan({ memory, unit }: { memory: Memory; unit: Unit }) {
  const [frame, { width }] = useSize();
  const saved = memory.unshared > 0 ? 1 - memory.arena / memory.unshared : 0;
  const sharing = saved > 0.005 ? `: sharing saves ${format.percent(saved)}` : "";
  const aside = `${format.bytes(memory.arena)} for ${format.bytes(memory.unshared)} of buffers${sharing}`;
  return (
    <Panel title={`Arena of ${memory.graph}`} aside={aside}>
      {memory.blocks.length ? (
        <div ref={frame}>{width > 0 && <Chart memory={memory} unit={unit} width={width} />}</div>
      ) : (
        <p class="faint">No buffer lives in the arena: all of this graph's values are its results, or stay in registers.</p>
      )}
    </Panel>
  );
}

interface BlockShape {
  name: string;
  size: number;
  offset: number;
  first: number;
  last: number;
  /** The kernel that writes the buffer, and the lines of all kernels during which it is live. */
  kernel: KernelEntry | null;
  places: Place[];
}

function shapesOf(memory: Memory, unit: Unit): BlockShape[] {
  const kernels = index.value!.kernels.filter((entry) => entry.unit === unit && entry.kernel.graph === memory.graph);
  return memory.blocks.map(([name, size, offset, first, last]) => ({
    name,
    size,
    offset,
    first,
    last,
    kernel: kernels[first] ?? null,
    places: kernels[first]?.kernel.places ?? [],
  }));
}

function Chart({ memory, unit, width }: { memory: Memory; unit: Unit; width: number }) {
  const shapes = useMemo(() => shapesOf(memory, unit), [memory, unit]);
  const group = useMarkedGroup(shapes);
  const steps = Math.max(...shapes.map((shape) => shape.last + 1), 1);
  const bytes = Math.max(memory.arena, ...shapes.map((shape) => shape.offset + shape.size), 1);
  const height = Math.min(Math.max(220, shapes.length * 16), 460);
  const x = (step: number) => EDGE.left + (step / steps) * (width - EDGE.left - EDGE.right);
  const y = (at: number) => EDGE.top + (at / bytes) * (height - EDGE.top - EDGE.bottom);
  const ticks = [0, 0.25, 0.5, 0.75, 1];
  const every = Math.max(1, Math.ceil(steps / 16));
  return (
    <svg class="chart" width={width} height={height} role="img" aria-label={`Memory of ${memory.graph} over time`}>
      {ticks.map((part) => (
        <g key={part}>
          <line class="grid" x1={EDGE.left} x2={width - EDGE.right} y1={y(bytes * part)} y2={y(bytes * part)} />
          <text class="tick" x={EDGE.left - 8} y={y(bytes * part) + 4} text-anchor="end">
            {format.bytes(Math.round(bytes * part))}
          </text>
        </g>
      ))}
      {Array.from({ length: Math.ceil(steps / every) }, (_, at) => at * every).map((step) => (
        <text key={step} class="tick" x={x(step + 0.5)} y={height - 18} text-anchor="middle">
          {step}
        </text>
      ))}
      <text class="tick" x={(EDGE.left + width) / 2} y={height - 3} text-anchor="middle">
        kernels, in the order they run
      </text>
      <g ref={group}>
        {shapes.map((shape, at) => (
          <Block
            key={at}
            shape={shape}
            x={x(shape.first)}
            y={y(shape.offset)}
            width={x(shape.last + 1) - x(shape.first)}
            height={y(shape.offset + shape.size) - y(shape.offset)}
          />
        ))}
      </g>
    </svg>
  );
}

function Block({ shape, x, y, width, height }: { shape: BlockShape; x: number; y: number; width: number; height: number }) {
  const own = () => markOf(shape.places, shape.kernel);
  const colour = shape.kernel ? shape.kernel.index % 10 : 0;
  const title = `${shape.name}: ${format.bytes(shape.size)} at ${shape.offset}, kernels ${shape.first} to ${shape.last}`;
  return (
    <g class="block" onMouseEnter={() => hover(own())} onMouseLeave={() => hover(null)} onClick={() => togglePin(own())}>
      <rect
        class={`colour-${colour}`}
        x={x + 0.5}
        y={y + 0.5}
        width={Math.max(width - 1, 1)}
        height={Math.max(height - 1, 1)}
        rx={2}
      />
      {height > 13 && width > shape.name.length * LETTER_WIDTH + 8 && (
        <text x={x + 6} y={y + height / 2 + 4}>
          {shape.name}
        </text>
      )}
      <title>{title}</title>
    </g>
  );
}
