// The result of capturing a function: its lines, breaks, guards, and the bytecode that replaces it.

import type { ComponentChildren } from "preact";
import * as format from "../format";
import { Empty, Panel, PlaceLink } from "../parts/small";
import { StageView } from "../parts/stage";
import { stageAt } from "../parts/strip";
import { UnitFrame } from "../parts/unit_frame";
import type { Break, Place, Unit } from "../recording";
import { go, unit } from "../state";
import { sentence } from "./facts";

export function Capture() {
  const found = unit.value;
  if (!found) return <Empty title="Nothing was captured">Call a function under torch.compile while recording.</Empty>;
  const entry = stageAt(found);
  return <UnitFrame found={found}>{entry ? <StageView entry={entry} /> : <Summary unit={found} />}</UnitFrame>;
}

function Summary({ unit }: { unit: Unit }) {
  return (
    <div class="page">
      <header class="head">
        <h1>
          {unit.name} {unit.place && <PlaceLink place={unit.place} />}
        </h1>
        <p>{sentence(unit)}</p>
      </header>
      <div class="columns">
        <Lines unit={unit} />
        {unit.recompile && <Again unit={unit} />}
      </div>
      {unit.notes.map((note) => (
        <Panel key={note} title="Captured another way" class="warn">
          <p>{note}</p>
        </Panel>
      ))}
      {unit.breaks.map((each, at) => (
        <BreakPanel key={at} each={each} number={at + 1} />
      ))}
      {!unit.breaks.length && (
        <Panel title="Breaks">
          <p class="good">None: the whole function is in one graph.</p>
        </Panel>
      )}
      <Guards unit={unit} />
    </div>
  );
}

function Lines({ unit }: { unit: Unit }) {
  const kinds: [string, Place[], string][] = [
    ["captured", unit.captured, "captured into a graph"],
    ["broken", unit.broken, "broke the graph"],
    ["untouched", unit.untouched, "not captured"],
  ];
  const all = kinds.reduce((sum, [, places]) => sum + places.length, 0);
  return (
    <Panel title="Lines" aside={format.count(all, "line")}>
      <div class="flame small">
        {kinds.map(
          ([kind, places]) => places.length > 0 && <div key={kind} class={kind} style={{ flexGrow: places.length }} />,
        )}
      </div>
      <ul class="plain">
        {kinds.map(([kind, places, title]) => (
          <li key={kind}>
            <span class={`shape ${kind}`} /> <b>{places.length}</b> {title}
            {kind !== "captured" && places.slice(0, 6).map((place) => <PlaceLink key={place} place={place} text />)}
          </li>
        ))}
      </ul>
    </Panel>
  );
}

function Again({ unit }: { unit: Unit }) {
  const { of, failed } = unit.recompile!;
  return (
    <Panel title="Why it was compiled again" class="warn">
      <ul class="plain">
        {failed.map((each) => (
          <li key={each}>
            <code class="wrap">{each}</code>
          </li>
        ))}
      </ul>
      {of !== null && (
        <button class="link" onClick={() => go({ view: "Capture", unit: of })}>
          the capture that did not fit
        </button>
      )}
    </Panel>
  );
}

function BreakPanel({ each, number }: { each: Break; number: number }) {
  return (
    <Panel
      title={
        <>
          <span class="shape broken" /> Break {number}: {each.reason}
        </>
      }
      class="bad"
    >
      {each.hint && <p class="hint">{each.hint}</p>}
      {each.places.length > 0 && (
        <ol class="stack">
          {each.places.map((place, at) => (
            <li key={at}>
              <PlaceLink place={place} text />
            </li>
          ))}
        </ol>
      )}
    </Panel>
  );
}

function Guards({ unit }: { unit: Unit }) {
  const guards = [...unit.guards].sort((a, b) => Number(b.failed) - Number(a.failed));
  const aside: ComponentChildren = guards.length > 0 && `${format.count(guards.length, "guard")}, checked on every call`;
  return (
    <Panel title="Guards" aside={aside}>
      {!guards.length && <p class="faint">None were recorded.</p>}
      <ul class="guards">
        {guards.map((guard, at) => (
          <li key={at} class={guard.failed ? "failed" : ""}>
            <span
              class={`shape ${guard.failed ? "broken" : "captured"}`}
              title={guard.failed ? "a later call failed it" : "held"}
            />
            <code class="wrap">{guard.text}</code>
            {guard.failed && <span class="tag bad">failed later</span>}
          </li>
        ))}
      </ul>
    </Panel>
  );
}
