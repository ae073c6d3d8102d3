// Syntax highlighting of the texts; the colours are the page's own, so that they follow its theme.

import { cpp } from "@codemirror/lang-cpp";
import { python } from "@codemirror/lang-python";
import { HighlightStyle, StreamLanguage, type StreamParser, syntaxHighlighting } from "@codemirror/language";
import { gas } from "@codemirror/legacy-modes/mode/gas";
import type { Extension } from "@codemirror/state";
import { tags } from "@lezer/highlight";
import type { Stage } from "../recording";

const KEYWORDS = /^(graph|block\d+|return|if|else|while|for|in|def|class|fused|with|None|True|False)\b/;

/** The syntax of TorchScript's graphs, instructions and trees: "%2 : Tensor = aten::relu(%x)". */
const graphs: StreamParser<null> = {
  startState: () => null,
  token(stream) {
    if (stream.eatSpace()) return null;
    if (stream.match(/^#.*/)) return "comment";
    if (stream.match(/^"(?:[^"\\]|\\.)*"?/) || stream.match(/^'(?:[^'\\]|\\.)*'?/)) return "string";
    if (stream.match(/^%[\w.]+/)) return "variableName";
    if (stream.match(/^\w+::[\w.]+/)) return "keyword";
    if (stream.match(/^-?\d[\w.]*/)) return "number";
    if (stream.match(KEYWORDS)) return "keyword";
    if (stream.match(/^[A-Z][\w.]*/)) return "typeName";
    if (stream.match(/^\w+/)) return null;
    stream.next();
    return null;
  },
};

const style = HighlightStyle.define([
  { tag: [tags.keyword, tags.controlKeyword, tags.modifier, tags.operatorKeyword], color: "var(--code-keyword)" },
  { tag: [tags.string, tags.special(tags.string)], color: "var(--code-string)" },
  { tag: [tags.comment, tags.lineComment, tags.blockComment], color: "var(--code-comment)" },
  { tag: [tags.number, tags.bool, tags.null], color: "var(--code-number)" },
  { tag: [tags.typeName, tags.className, tags.standard(tags.typeName)], color: "var(--code-type)" },
  { tag: [tags.function(tags.variableName), tags.function(tags.definition(tags.variableName))], color: "var(--code-function)" },
  { tag: [tags.meta, tags.processingInstruction], color: "var(--code-comment)" },
]);

const LANGUAGES: Record<Stage["language"], () => Extension> = {
  python: () => python(),
  cpp: () => cpp(),
  assembly: () => StreamLanguage.define(gas),
  bytecode: () => StreamLanguage.define(graphs),
  torchscript: () => StreamLanguage.define(graphs),
  text: () => StreamLanguage.define(graphs),
};

export function languageOf(name: Stage["language"]): Extension {
  return [(LANGUAGES[name] ?? LANGUAGES.text)(), syntaxHighlighting(style)];
}
