// The bar at the foot: the result of the marked line in each stage.

import { computed } from "@preact/signals";
import * as format from "../format";
import { type Index, lineText, placeName } from "../indices";
import { type Mark, kernelsOf, mark, pinned } from "../marks";
import type { Place } from "../recording";
import { index } from "../state";
import { openKernel } from "./open_kernel";

const facts = computed(() => (index.value && mark.value ? factsOf(index.value, mark.value) : null));

export function Trail() {
  const found = facts.value;
  if (!found)
    return (
      <footer class="trail faint">
        Point at a line, a node or a kernel to see what it came from and what became of it; click to pin it. <kbd>?</kbd> shows
        the keys.
      </footer>
    );
  const { title, text, status, kernels, seconds, share, reason } = found;
  return (
    <footer class="trail">
      {pinned.value && (
        <button class="unpin" title="Let go of the pinned mark (Esc)" onClick={() => (pinned.value = null)}>
          pinned ×
        </button>
      )}
      <b>{title}</b> <code>{text}</code>
      {status && (
        <span>
          <span class={`shape ${status}`} /> {status}
        </span>
      )}
      {reason && <span class="bad">{reason}</span>}
      {kernels.length > 0 && (
        <span>
          {kernels.length === 1 ? (
            <button class="link" onClick={() => openKernel(kernels[0]!)}>
              {kernels[0]!.kernel.name}
            </button>
          ) : (
            format.count(kernels.length, "kernel")
          )}
          {seconds > 0 && (
            <>
              {" "}
              · {format.seconds(seconds)} · <b>{format.percent(share)}</b> of kernel time
            </>
          )}
        </span>
      )}
    </footer>
  );
}

function factsOf(index: Index, current: Mark) {
  const places = [...current.places];
  const first = places[0];
  const only = places.length === 1 ? first : undefined;
  const seconds = current.kernel ? current.kernel.kernel.seconds : sumOf(index, places);
  return {
    title: titleOf(index, current, places),
    text: first ? lineText(index.recording, first) : "",
    status: only && index.status.get(only),
    reason: only && index.breakOfPlace.get(only)?.reason,
    kernels: kernelsOf(index, current),
    seconds,
    share: seconds / index.kernelSeconds,
  };
}

function sumOf(index: Index, places: Place[]): number {
  return places.reduce((sum, place) => sum + (index.seconds.get(place) ?? 0), 0);
}

/** "kernel_3, attend.py:6 and 2 more lines". */
function titleOf(index: Index, current: Mark, places: Place[]): string {
  const first = places[0] && placeName(index.recording, places[0]);
  const more = places.length > 1 ? ` and ${format.count(places.length - 1, "more line")}` : "";
  return [current.kernel?.kernel.name, first && first + more].filter(Boolean).join(", ");
}
