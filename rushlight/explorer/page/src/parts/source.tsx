// The source of the programs, always on the screen.

import { computed } from "@preact/signals";
import { useMemo } from "preact/hooks";
import { Code } from "../code/code";
import { sourceGutters } from "../code/source_gutters";
import { type Block, type Index, countLines, fileOf } from "../indices";
import { mark, markOf, pinned } from "../marks";
import type { SourceFile } from "../recording";
import { file, index, showFile } from "../state";
import { Empty } from "./small";

export function SourcePane() {
  const found = index.value!;
  const files = found.recording.files;
  const order = files.map((each, at) => ({ each, at })).sort((a, b) => Number(b.each.own) - Number(a.each.own));
  return (
    <section class="source" aria-label="Source">
      <nav class="files" role="tablist">
        {order.map(({ each, at }) => (
          <FileTab key={at} at={at} shown={each} />
        ))}
      </nav>
      <Source index={found} at={Math.min(file.value, files.length - 1)} />
      <Legend index={found} />
    </section>
  );
}

const markedFiles = computed(() => new Set([...(mark.value?.places ?? [])].map(fileOf)));

function FileTab({ at, shown }: { at: number; shown: SourceFile }) {
  const marked = markedFiles.value.has(at) ? "is-marked" : "";
  return (
    <button
      role="tab"
      class={`file ${shown.own ? "" : "installed"} ${marked}`}
      aria-selected={at === file.value}
      title={shown.own ? shown.path : `${shown.path} (of an installed package)`}
      onClick={() => showFile(at)}
    >
      {shown.name}
    </button>
  );
}

function Source({ index, at }: { index: Index; at: number }) {
  const shown = index.recording.files[at];
  const gutters = useMemo(() => sourceGutters(index, at), [index, at]);
  const blocks = useMemo(() => lineBlocks(at, shown?.text ?? ""), [index, at]);
  const markOfLine = useMemo(
    () => (line: number) => (isKnown(index, `${at}:${line}`) ? markOf([`${at}:${line}`]) : null),
    [index, at],
  );
  if (!shown) return <Empty title="No source">The recording holds no file of the program.</Empty>;
  if (!shown.text) return <Empty title="No text">{shown.path} could not be read, or was left out of the recording.</Empty>;
  return (
    <Code
      text={shown.text}
      language="python"
      blocks={blocks}
      markOfLine={markOfLine}
      program
      line={beginOf(shown.text, at)}
      gutters={gutters}
      label={`Source of ${shown.name}`}
    />
  );
}

/** The first non-empty line, if many empty ones come before it: an archive holds parts of files. */
function beginOf(text: string, at: number): number | null {
  const first = countLines(text.slice(0, Math.max(text.search(/\S/), 0)));
  const isPinned = [...(pinned.peek()?.places ?? [])].some((place) => fileOf(place) === at);
  return first > 20 && !isPinned ? first : null;
}

function lineBlocks(at: number, text: string): Block[] {
  return Array.from({ length: countLines(text) }, (_, line) => ({
    first: line + 1,
    last: line + 1,
    places: [`${at}:${line + 1}`],
    kernel: null,
  }));
}

function isKnown(index: Index, place: string): boolean {
  return index.status.has(place) || index.kernelsOfPlace.has(place) || index.places.has(place);
}

function Legend({ index }: { index: Index }) {
  return (
    <footer class="legend">
      <span>
        <span class="shape captured" /> captured
      </span>
      <span>
        <span class="shape broken" /> broke the graph
      </span>
      <span>
        <span class="shape untouched" /> not captured
      </span>
      {index.kernelSeconds > 0 && (
        <span>
          <span class="heat key">
            <i style={{ width: "100%" }} />
          </span>{" "}
          share of kernel time
        </span>
      )}
    </footer>
  );
}
