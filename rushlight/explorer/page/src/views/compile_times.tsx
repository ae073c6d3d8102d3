// The calls that compiled, with the time of each stage.

import * as format from "../format";
import { Panel } from "../parts/small";
import type { Call } from "../recording";

const MAX_CALLS = 8; // only the slowest calls are shown

export function CompileTimes({ calls }: { calls: Call[] }) {
  const compiling = calls.filter((call) => call.stages.length > 0).sort((a, b) => b.seconds - a.seconds);
  const sums = sumsByStage(compiling);
  const all = sums.reduce((total, [, spent]) => total + spent, 0);
  if (!all) return null;
  const colours = new Map(sums.map(([stage], at) => [stage, `colour-${at % 10}`]));
  return (
    <Panel
      title="First calls, by stage"
      aside={`${format.seconds(all)} in ${format.count(compiling.length, "call")} that compiled`}
    >
      <div class="compile-times">
        {compiling.slice(0, MAX_CALLS).map((call, at) => (
          <Row key={at} call={call} width={call.seconds / compiling[0]!.seconds} colours={colours} />
        ))}
      </div>
      <div class="key-list flame-key">
        {sums.map(([stage, spent], at) => (
          <span key={at}>
            <i class={`swatch ${colours.get(stage)}`} /> {stage} <b>{format.seconds(spent)}</b>{" "}
            <span class="faint">{format.percent(spent / all)}</span>
          </span>
        ))}
      </div>
    </Panel>
  );
}

function Row({ call, width, colours }: { call: Call; width: number; colours: Map<string, string> }) {
  const rest = call.seconds - call.stages.reduce((sum, [, spent]) => sum + spent, 0);
  return (
    <div>
      <span>{call.name}</span>
      <span class="number">{format.seconds(call.seconds)}</span>
      <div>
        <div class="flame" style={{ width: `${width * 100}%` }}>
          {call.stages.map(([stage, spent], at) => (
            <div
              key={at}
              class={colours.get(stage)}
              style={{ flexGrow: spent / call.seconds }}
              title={`${stage}: ${format.seconds(spent)}`}
            />
          ))}
          {rest > 0 && (
            <div class="around" style={{ flexGrow: rest / call.seconds }} title={`the rest: ${format.seconds(rest)}`} />
          )}
        </div>
      </div>
    </div>
  );
}

function sumsByStage(calls: Call[]): [string, number][] {
  const sums = new Map<string, number>();
  for (const call of calls) for (const [stage, spent] of call.stages) sums.set(stage, (sums.get(stage) ?? 0) + spent);
  return [...sums];
}
