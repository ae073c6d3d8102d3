// The page: bar, source, view and foot.

import { useRef } from "preact/hooks";
import type { ComponentChildren } from "preact";
import { KEYS, help } from "./keys";
import { SearchBox } from "./parts/search_box";
import { SourcePane } from "./parts/source";
import { Empty } from "./parts/small";
import { Trail } from "./parts/trail";
import type { Recording } from "./recording";
import { VIEWS, type View, current, dark, file, go, index, recordings, route, trouble } from "./state";
import { Capture } from "./views/capture";
import { Compare } from "./views/compare";
import { Eager } from "./views/eager";
import { Graphs } from "./views/graphs";
import { Inductor } from "./views/inductor";
import { Overview } from "./views/overview";
import { Time } from "./views/time";
import { TorchScript } from "./views/torchscript";

const SHOWN: Record<View, () => ComponentChildren> = { Overview, Capture, Graphs, Inductor, Time, TorchScript, Eager, Compare };

/** Whether a view has something to show. */
function hasData(view: View, { units, interpreted, eager, tapes }: Recording): boolean {
  const captures = units.filter((unit) => unit.kind === "capture");
  const stages = (name: string) => captures.some((unit) => unit.stages.some((stage) => stage.view === name));
  switch (view) {
    case "Overview":
      return true;
    case "Capture":
      return captures.length > 0;
    case "Graphs":
      return stages("Graphs");
    case "Inductor":
      return stages("Inductor") || captures.some((unit) => unit.kernels.length > 0);
    case "Time":
      return interpreted.length > 0 || units.some((unit) => unit.kernels.some((kernel) => kernel.seconds > 0));
    case "TorchScript":
      return units.some((unit) => unit.kind === "script");
    case "Eager":
      return eager.length > 0 || tapes.length > 0;
    case "Compare":
      return recordings.value.length > 1;
  }
}

export function App() {
  if (!index.value)
    return <Empty title="No recording in this page">{trouble.value || "The page was opened without one."}</Empty>;
  const Shown = SHOWN[route.value.view];
  return (
    <>
      <Bar recording={index.value.recording} />
      {trouble.value && (
        <div class="trouble" role="alert">
          {trouble.value} <button onClick={() => (trouble.value = "")}>Close</button>
        </div>
      )}
      <Split
        left={<SourcePane />}
        right={
          <main key={`${current.value}`} class="view" id="view">
            <Shown />
          </main>
        }
      />
      <Trail />
      {help.value && <Help />}
    </>
  );
}

function Bar({ recording }: { recording: Recording }) {
  return (
    <header class="bar">
      <span class="brand" title={recording.command}>
        <i class="flame-mark" />
        {recording.title || recording.command}
      </span>
      {recordings.value.length > 1 && <Recordings />}
      <nav class="views" aria-label="Views">
        {VIEWS.map((view) => (
          <button
            key={view}
            class={hasData(view, recording) ? "" : "dim"}
            aria-current={view === route.value.view ? "page" : undefined}
            onClick={() => go({ view })}
          >
            {view}
          </button>
        ))}
      </nav>
      <SearchBox />
      <button class="icon" title="Dark or light (t)" aria-label="Dark or light" onClick={() => (dark.value = !dark.value)}>
        {dark.value ? "☀" : "☾"}
      </button>
      <button class="icon" title="Keys (?)" aria-label="Keys" onClick={() => (help.value = !help.value)}>
        ?
      </button>
    </header>
  );
}

function Recordings() {
  const choose = (event: Event) => {
    current.value = Number((event.currentTarget as HTMLSelectElement).value);
    file.value = 0;
    go({ unit: null, stage: null });
  };
  return (
    <select aria-label="Recording" value={String(current.value)} onChange={choose}>
      {recordings.value.map((each, at) => (
        <option key={at} value={String(at)}>
          {at + 1}. {each.title || each.command} · {each.made.slice(11)}
        </option>
      ))}
    </select>
  );
}

/** Two panes with a draggable edge between them. */
function Split({ left, right }: { left: ComponentChildren; right: ComponentChildren }) {
  const frame = useRef<HTMLDivElement>(null);
  const drag = (event: PointerEvent) => {
    const handle = event.currentTarget as HTMLElement;
    handle.setPointerCapture(event.pointerId);
    const move = ({ clientX }: PointerEvent) => {
      const share = Math.min(Math.max((clientX / innerWidth) * 100, 15), 70);
      frame.current!.style.setProperty("--source", `${share}%`);
    };
    handle.addEventListener("pointermove", move);
    handle.addEventListener("pointerup", () => handle.removeEventListener("pointermove", move), { once: true });
  };
  return (
    <div class="split" ref={frame}>
      {left}
      <div class="edge-handle" role="separator" aria-orientation="vertical" onPointerDown={drag} />
      {right}
    </div>
  );
}

function Help() {
  return (
    <div class="help" role="dialog" aria-label="Keys" onClick={() => (help.value = false)}>
      <div>
        <h2>Keys</h2>
        <dl>
          {KEYS.map(([key, what]) => (
            <div key={key}>
              <dt>
                {key.split("  ").map((each) => (
                  <kbd key={each}>{each}</kbd>
                ))}
              </dt>
              <dd>{what}</dd>
            </div>
          ))}
        </dl>
      </div>
    </div>
  );
}
