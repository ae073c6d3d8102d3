// A run of the stack machine, instruction by instruction.

import { useSignal } from "@preact/signals";
import { useEffect, useMemo, useRef } from "preact/hooks";
import { Code } from "../code/code";
import { type Mark, hovered, markOf } from "../marks";
import { Panel } from "../parts/small";
import type { Steps } from "../recording";
import { isTyping } from "../keys";

const INTERVAL = 350; // milliseconds between steps during playback

export function Stepper({ steps }: { steps: Steps }) {
  const at = useSignal(0);
  const playing = useSignal(false);
  const last = steps.steps.length - 1;
  const move = (to: number) => {
    at.value = Math.min(Math.max(to, 0), last);
    if (at.value === last) playing.value = false;
  };
  useEffect(() => {
    if (!playing.value) return;
    const timer = setInterval(() => move(at.peek() + 1), INTERVAL);
    return () => clearInterval(timer);
  }, [playing.value]);
  useEffect(
    () =>
      listen((key) => {
        if (key === "ArrowRight") move(at.peek() + 1);
        else if (key === "ArrowLeft") move(at.peek() - 1);
        else if (key === "Home") move(0);
        else if (key === "End") move(last);
        else if (key === " ") playing.value = !playing.peek();
        else return false;
        return true;
      }),
    [],
  );
  if (last < 0) return <p class="faint">The run left no step.</p>;
  return (
    <div class="stepper">
      <header class="stage-bar">
        <h2>Stack machine</h2>
        <span class="buttons">
          <button onClick={() => move(0)} title="First (Home)">
            |◀
          </button>
          <button onClick={() => move(at.value - 1)} title="Back (←)">
            ◀
          </button>
          <button onClick={() => (playing.value = !playing.value)} title="Play or stop (space)">
            {playing.value ? "Stop" : "Play"}
          </button>
          <button onClick={() => move(at.value + 1)} title="Forward (→)">
            ▶
          </button>
          <button onClick={() => move(last)} title="Last (End)">
            ▶|
          </button>
        </span>
        <input
          type="range"
          min={0}
          max={last}
          value={at.value}
          aria-label="Step"
          onInput={(event) => move(Number(event.currentTarget.value))}
        />
        <span class="faint step">
          step {at.value + 1} of {last + 1}
          {steps.cut && ", cut: the run went on"}
        </span>
      </header>
      <div class="stepper-body">
        <Instructions steps={steps} at={at.value} />
        <Values steps={steps} at={at.value} />
      </div>
    </div>
  );
}

function listen(handle: (key: string) => boolean): () => void {
  const pressed = (event: KeyboardEvent) => {
    if (isTyping(event) || event.ctrlKey || event.metaKey || event.altKey) return;
    if (handle(event.key)) event.preventDefault();
  };
  addEventListener("keydown", pressed);
  return () => removeEventListener("keydown", pressed);
}

function Instructions({ steps, at }: { steps: Steps; at: number }) {
  const instruction = steps.steps[at]![0];
  const place = steps.places[instruction] ?? null;
  const text = useMemo(() => steps.instructions.join("\n"), [steps]);
  const blocks = useMemo(
    () =>
      steps.places.flatMap((each, line) => (each ? [{ first: line + 1, last: line + 1, places: [each], kernel: null }] : [])),
    [steps],
  );
  const own = useRef<Mark | null>(null);
  useEffect(() => {
    own.current = place ? markOf([place]) : null;
    hovered.value = own.current;
    return () => {
      if (hovered.peek() === own.current) hovered.value = null;
    };
  }, [place]);
  return (
    <div class="instructions">
      <Code text={text} language="torchscript" blocks={blocks} label="Instructions" current={instruction + 1} />
    </div>
  );
}

function Values({ steps, at }: { steps: Steps; at: number }) {
  const [, stack, registers] = steps.steps[at]!;
  const before = new Map(steps.steps[at - 1]?.[2] ?? []);
  return (
    <div class="values">
      <Panel title="Stack" aside={`${stack.length} deep, top first`}>
        <ol class="stack-values">
          {[...stack].reverse().map((value, depth) => (
            <li key={depth} class={depth === 0 ? "top" : ""}>
              <code>{value}</code>
            </li>
          ))}
        </ol>
        {!stack.length && <p class="faint">empty</p>}
      </Panel>
      <Panel title="Registers" aside={String(registers.length)}>
        <dl class="registers">
          {registers.map(([name, value]) => (
            <div key={name} class={before.get(name) === value ? "" : "changed"}>
              <dt>{name}</dt>
              <dd>
                <code>{value}</code>
              </dd>
            </div>
          ))}
        </dl>
        {!registers.length && <p class="faint">none in use</p>}
      </Panel>
    </div>
  );
}
