// A read-only text whose lines show and set marks.

import { unifiedMergeView } from "@codemirror/merge";
import { search, searchKeymap } from "@codemirror/search";
import { Compartment, EditorState, type Extension } from "@codemirror/state";
import { EditorView, highlightActiveLine, highlightSpecialChars, keymap, lineNumbers } from "@codemirror/view";
import { effect } from "@preact/signals";
import { useEffect, useRef } from "preact/hooks";
import type { Block } from "../indices";
import { levelsOf, mark, pinned } from "../marks";
import type { Stage } from "../recording";
import { differencesByLine } from "./line_differences";
import { languageOf } from "./languages";
import { type MarkOfLine, isClicked, markOfBlocks, markedLines, reveal, setLevels, showLine } from "./marked_lines";
import { drawRuler } from "./ruler";

interface Properties {
  text: string;
  language: Stage["language"];
  blocks: Block[];
  /** The earlier text that this one is compared with. */
  base?: string | null;
  markOfLine?: MarkOfLine;
  /** Whether the text is the program's source, not a stage's. */
  program?: boolean;
  /** Gutters beside the line numbers. Create the extension once: a new one recreates the editor. */
  gutters?: Extension;
  /** A line to scroll to. */
  line?: number | null;
  /** The line at which a stepped run is, to highlight. */
  current?: number;
  /** The number of the first line, if the text is part of a longer one. */
  begins?: number;
  label: string;
}

const look = EditorView.theme({
  "&": { height: "100%", color: "var(--text)", backgroundColor: "transparent" },
  ".cm-scroller": { fontFamily: "var(--mono)", fontSize: "12.5px", lineHeight: "19px", overflow: "auto" },
  ".cm-content": { padding: "6px 0 40px" },
  ".cm-line": { padding: "0 16px 0 6px" },
  ".cm-gutters": { backgroundColor: "var(--panel)", color: "var(--faint)", border: "none" },
  ".cm-lineNumbers .cm-gutterElement": { padding: "0 8px 0 6px", minWidth: "30px" },
  "&.cm-focused": { outline: "none" },
});

const fixed: Extension = [
  EditorState.readOnly.of(true),
  EditorView.editable.of(false),
  EditorView.contentAttributes.of({ tabindex: "0", "aria-readonly": "true" }),
  highlightSpecialChars(),
  search({ top: true }),
  keymap.of(searchKeymap),
  look,
];

function difference(base: string | null | undefined): Extension {
  if (base === null || base === undefined) return [];
  return unifiedMergeView({
    original: base,
    mergeControls: false,
    collapseUnchanged: { margin: 4, minSize: 8 },
    diffConfig: { override: differencesByLine },
  });
}

export function Code({
  text,
  language,
  blocks,
  base,
  markOfLine,
  program,
  gutters,
  line,
  current,
  begins = 1,
  label,
}: Properties) {
  const parent = useRef<HTMLDivElement>(null);
  const ruler = useRef<HTMLCanvasElement>(null);
  const editor = useRef<{ view: EditorView; differences: Compartment } | null>(null);

  useEffect(() => {
    const differences = new Compartment();
    const marks = markedLines(blocks, markOfLine ?? markOfBlocks(blocks));
    const numbers = lineNumbers({ formatNumber: (number) => String(number + begins - 1) });
    const extensions = [
      gutters ?? [],
      numbers,
      current ? highlightActiveLine() : [],
      fixed,
      languageOf(language),
      marks,
      differences.of(difference(base)),
    ];
    const view = new EditorView({ parent: parent.current!, state: EditorState.create({ doc: text, extensions }) });
    view.contentDOM.setAttribute("aria-label", label);
    editor.current = { view, differences };
    const lines = view.state.doc.lines;
    const stopMarks = effect(() => {
      const levels = levelsOf(mark.value, blocks, program);
      view.dispatch({ effects: setLevels.of(levels) });
      drawRuler(ruler.current, blocks, levels, lines);
    });
    let first = true;
    const stopPins = effect(() => {
      const pin = pinned.value;
      if (pin && !isClicked(view) && !(first && line))
        requestAnimationFrame(() => view.dom.isConnected && reveal(view, blocks, levelsOf(pin, blocks, program)));
      first = false;
    });
    return () => {
      stopMarks();
      stopPins();
      view.destroy();
    };
  }, [text, language, blocks, gutters]);

  useEffect(() => {
    const { view, differences } = editor.current!;
    view.dispatch({ effects: differences.reconfigure(difference(base)) });
  }, [base, text]);

  useEffect(() => {
    if (line) requestAnimationFrame(() => editor.current && showLine(editor.current.view, line));
  }, [line, text]);

  useEffect(() => {
    if (!current || !editor.current) return;
    const { view } = editor.current;
    const at = view.state.doc.line(Math.min(current, view.state.doc.lines)).from;
    view.dispatch({ selection: { anchor: at }, effects: EditorView.scrollIntoView(at, { y: "nearest", yMargin: 60 }) });
  }, [current, text]);

  return (
    <div class={`code ${current ? "runs" : ""}`}>
      <div class="code-text" ref={parent} />
      <canvas class="ruler" ref={ruler} width={8} height={1} aria-hidden="true" />
    </div>
  );
}
