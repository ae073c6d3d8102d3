// Gutters beside the lines of a program: their fate in compilation, and their share of the kernels' time.

import type { Extension } from "@codemirror/state";
import { GutterMarker, gutter } from "@codemirror/view";
import * as format from "../format";
import type { Index, LineStatus } from "../indices";

const TITLES: Record<LineStatus, string> = {
  captured: "captured into a graph",
  broken: "broke the graph: ran as Python",
  untouched: "not captured",
};

class StatusMarker extends GutterMarker {
  constructor(readonly status: LineStatus) {
    super();
  }
  override eq(other: StatusMarker): boolean {
    return other.status === this.status;
  }
  override toDOM(): Node {
    const element = document.createElement("span");
    element.className = `shape ${this.status}`;
    element.title = TITLES[this.status];
    return element;
  }
}

class HeatMarker extends GutterMarker {
  constructor(
    readonly share: number,
    readonly width: number,
    readonly spent: number,
  ) {
    super();
  }
  override toDOM(): Node {
    const element = document.createElement("span");
    element.className = "heat";
    element.title = `${format.seconds(this.spent)}, ${format.percent(this.share)} of the time in kernels`;
    const bar = element.appendChild(document.createElement("i"));
    bar.style.width = `${Math.max(this.width * 100, 4)}%`;
    bar.style.opacity = String(0.35 + 0.65 * this.width);
    return element;
  }
}

const statuses: Record<LineStatus, StatusMarker> = {
  captured: new StatusMarker("captured"),
  broken: new StatusMarker("broken"),
  untouched: new StatusMarker("untouched"),
};

export function sourceGutters(index: Index, file: number): Extension {
  const status = gutter({
    class: "cm-status",
    lineMarker(view, line) {
      const found = index.status.get(`${file}:${view.state.doc.lineAt(line.from).number}`);
      return found ? statuses[found] : null;
    },
  });
  if (!index.kernelSeconds) return status;
  const heat = gutter({
    class: "cm-heat",
    lineMarker(view, line) {
      const spent = index.seconds.get(`${file}:${view.state.doc.lineAt(line.from).number}`);
      return spent ? new HeatMarker(spent / index.kernelSeconds, spent / index.largestLine, spent) : null;
    },
  });
  return [heat, status];
}
