// Marks in an editor: only the lines that are on the screen are decorated.

import { type Extension, type Range, StateEffect, StateField } from "@codemirror/state";
import { Decoration, type DecorationSet, EditorView, ViewPlugin, type ViewUpdate } from "@codemirror/view";
import { type Block, blockAt } from "../indices";
import { type Mark, hover, markOf, togglePin } from "../marks";

export const setLevels = StateEffect.define<Uint8Array>();

const LINES = ["", "cm-marked-soft", "cm-marked"].map((name) => Decoration.line({ class: name }));

/** The mark that a line of the text stands for. */
export type MarkOfLine = (line: number) => Mark | null;

export function markOfBlocks(blocks: Block[]): MarkOfLine {
  return (line) => {
    const block = blockAt(blocks, line);
    return block && markOf(block.places, block.kernel);
  };
}

export function markedLines(blocks: Block[], markOfLine: MarkOfLine): Extension {
  const levels = StateField.define<Uint8Array>({
    create: () => new Uint8Array(blocks.length),
    update(value, transaction) {
      for (const each of transaction.effects) if (each.is(setLevels)) return each.value;
      return value;
    },
  });
  const indexOfBlock = new Map(blocks.map((block, at) => [block, at]));

  const decorate = (view: EditorView): DecorationSet => {
    const found = view.state.field(levels);
    const ranges: Range<Decoration>[] = [];
    for (const { from, to } of view.visibleRanges) {
      for (let at = from; at <= to;) {
        const line = view.state.doc.lineAt(at);
        const block = blockAt(blocks, line.number);
        const level = block ? (found[indexOfBlock.get(block)!] ?? 0) : 0;
        if (level) ranges.push(LINES[level]!.range(line.from));
        at = line.to + 1;
      }
    }
    return Decoration.set(ranges);
  };

  const plugin = ViewPlugin.fromClass(
    class {
      decorations: DecorationSet;
      constructor(view: EditorView) {
        this.decorations = decorate(view);
      }
      update(update: ViewUpdate): void {
        const changed = update.startState.field(levels) !== update.state.field(levels);
        if (changed || update.viewportChanged || update.docChanged) this.decorations = decorate(update.view);
      }
    },
    { decorations: (value) => value.decorations },
  );
  return [levels, plugin, pointer(markOfLine)];
}

let clicked: EditorView | null = null;

/** Whether the mark that is being pinned was clicked in this editor; then the editor does not scroll. */
export function isClicked(view: EditorView): boolean {
  return view === clicked;
}

function pointer(markOfLine: MarkOfLine): Extension {
  let last: Element | null = null;
  return EditorView.domEventHandlers({
    mousemove(event, view) {
      const line = (event.target as Element).closest(".cm-line");
      if (line === last) return;
      last = line;
      hover(line && view.contentDOM.contains(line) ? markOfLine(lineNumber(view, line)) : null);
    },
    mouseleave() {
      last = null;
      hover(null);
    },
    click(event, view) {
      const line = (event.target as Element).closest(".cm-line");
      if (!line || !view.contentDOM.contains(line) || !getSelection()?.isCollapsed) return;
      clicked = view;
      togglePin(markOfLine(lineNumber(view, line)));
      clicked = null;
    },
  });
}

function lineNumber(view: EditorView, line: Element): number {
  return view.state.doc.lineAt(view.posAtDOM(line)).number;
}

/** Scroll to the first marked line, unless one is on the screen. */
export function reveal(view: EditorView, blocks: Block[], levels: Uint8Array): void {
  const best = Math.max(0, ...new Set(levels));
  if (!best) return;
  const { from, to } = visibleLines(view);
  let first = 0;
  for (let at = 0; at < blocks.length; at++) {
    if (levels[at] !== best) continue;
    if (blocks[at]!.first <= to && blocks[at]!.last >= from) return;
    first ||= blocks[at]!.first;
  }
  showLine(view, first);
}

export function showLine(view: EditorView, line: number): void {
  const at = view.state.doc.line(Math.min(Math.max(line, 1), view.state.doc.lines)).from;
  view.dispatch({ effects: EditorView.scrollIntoView(at, { y: "center" }) });
}

function visibleLines(view: EditorView): { from: number; to: number } {
  const top = view.scrollDOM.scrollTop;
  const lineAt = (height: number) => view.state.doc.lineAt(view.lineBlockAtHeight(height).from).number;
  return { from: lineAt(top), to: lineAt(top + view.scrollDOM.clientHeight) };
}
