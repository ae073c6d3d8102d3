// A recording: what the page shows. `rushlight/explorer/recording.py` writes it as JSON.
//
// Times are seconds since the recording began; durations are seconds. Lines are counted from 1.

/** A line of a program: "FILE:LINE", FILE being an index into `Recording.files`. */
export type Place = string;

export interface Recording {
  version: 1;
  title: string;
  /** The command or the name of the block that was recorded. */
  command: string;
  /** When: ISO 8601, local time. */
  made: string;
  machine: Machine;
  /** Sentences on what the recording lacks: left out because it is too large, not measured because … Often empty. */
  notes: string[];
  /** The end of what the program printed. */
  output: string;
  /** The traceback with which the program ended. */
  error: string | null;
  files: SourceFile[];
  units: Unit[];
  calls: Call[];
  eager: EagerCall[];
  tapes: Tape[];
}

export interface Machine {
  processor: string;
  threads: number;
  python: string;
  rushlight: string;
  /** What the machine can do, as measured: bytes and floating-point operations per second; null where nothing was timed. */
  bandwidth: number | null;
  flops: number | null;
}

export interface SourceFile {
  path: string;
  /** The shortest end of the path that no other file here has. */
  name: string;
  /** Empty where the file could not be read or was left out. */
  text: string;
  /** Whether it is the user's, and not of an installed package. */
  own: boolean;
}

/** What was compiled as one thing: a capture of a Python function, or a method of TorchScript. */
export interface Unit {
  id: number;
  kind: "capture" | "script";
  name: string;
  /** The function's first line; null where no source is known. */
  place: Place | null;
  /** The function's last line in that file. */
  last: number | null;
  began: number;
  seconds: number;
  /** "compiled", "kept" (compiled before the recording), "eager" (runs as Python, `why` says why), "interpreted" (TorchScript). */
  status: string;
  why: string;
  /** Lines of programs by what became of them. A line that was both captured and broken is among the broken ones. */
  captured: Place[];
  broken: Place[];
  untouched: Place[];
  breaks: Break[];
  /** Set when the function had been captured before. */
  recompile: Recompile | null;
  guards: Guard[];
  /** What capture had to do differently, such as fixing sizes that it tried to leave open. */
  notes: string[];
  stages: Stage[];
  kernels: Kernel[];
  memory: Memory[];
  steps: Steps | null;
}

export interface Break {
  reason: string;
  hint: string;
  /** The stack, innermost last. */
  places: Place[];
}

export interface Recompile {
  /** The unit that did not fit. */
  of: number | null;
  /** One sentence for each earlier capture: the guard that failed. */
  failed: string[];
}

export interface Guard {
  text: string;
  /** Whether a later call failed it. */
  failed: boolean;
}

/** A stage's text, as logs print it. */
export interface Stage {
  /** Unique within the recording. */
  id: number;
  /** "Capture", "Graphs", "Inductor", "TorchScript": the view that it belongs to. */
  view: string;
  /** As RUSHLIGHT_LOGS names it: "graph", "joint", "loops", "fusion", "code", … */
  stage: string;
  title: string;
  language: "python" | "cpp" | "assembly" | "bytecode" | "torchscript" | "text";
  text: string;
  /** [first line, last line, places]: which lines of the text come from which lines of programs. Blocks do not overlap. */
  places: [number, number, Place[]][];
  at: number;
  seconds: number;
  graph: Graph | null;
  /** The id of the stage that this one is shown as a change of. */
  base: number | null;
}

export interface Graph {
  nodes: GraphNode[];
  /** [from, to], indices of nodes. */
  edges: [number, number][];
}

export interface GraphNode {
  name: string;
  /** What it does: "aten.mm", "input", "output", … */
  label: string;
  kind: "input" | "constant" | "call" | "output";
  /** Type and sizes: "f32[4, 16]". */
  detail: string;
  places: Place[];
  /** The modules around it, outermost first: ["encoder", "encoder.layer.0"]; [] where there are none. */
  path: string[];
  /** Its line in the stage's text. */
  line: number | null;
  /** The name of the kernel that calculates it. */
  kernel: string | null;
}

export interface Kernel {
  name: string;
  operators: string[];
  places: Place[];
  /** The title of the graph it belongs to: "forward", "backward", … */
  graph: string;
  /** Number of timed calls, with sums over them. 0 where it was not timed. */
  calls: number;
  seconds: number;
  bytes: number;
  flops: number;
  /** The time that the machine would need at its best, divided by `seconds`. */
  share: number;
  /** [stage id of the C++, first line, last line]. */
  code: [number, number, number] | null;
  /** The buffers it calculates and, for each neighbour that it could have been joined with, why it was not. */
  buffers: string[];
  apart: string[];
  assembly: string;
}

export interface Memory {
  /** The title of the graph. */
  graph: string;
  /** Bytes of the arena, and of all blocks beside one another. */
  arena: number;
  unshared: number;
  /** [name, bytes, offset, first kernel, last kernel]: kernels as indices among those of the graph. */
  blocks: [string, number, number, number, number][];
}

/** One call of a compiled function, from outside. */
export interface Call {
  unit: number | null;
  name: string;
  at: number;
  seconds: number;
  /** "compile", "kept", "hit", "recompile", "eager". */
  kind: string;
  /** Of a call that compiled: seconds by stage, in order. */
  stages: [string, number][];
  /** Whether this is a run of one compiled graph whose kernels were timed: their times are part of `seconds`. */
  timed: boolean;
  /** The graph that ran: the `graph` of its kernels. Empty for a call that is no run of one graph. */
  graph: string;
}

/** A run of a TorchScript method by the stack machine on small inputs. */
export interface Steps {
  /** The instructions, one a line, as `code` prints them. */
  instructions: string[];
  places: (Place | null)[];
  /** Each step: [instruction, stack before, registers]; values are short texts. */
  steps: [number, string[], [string, string][]][];
  /** Whether the run went on after the last step that is shown. */
  cut: boolean;
}

/** The way of one eager operator through the dispatcher. */
export interface EagerCall {
  operator: string;
  places: Place[];
  seconds: number;
  /** How often the program called it; what follows is the first call. */
  count: number;
  inputs: string[];
  outputs: string[];
  /** Each step: the dispatch keys that are left, the one that was chosen, and the kernel registered for it. */
  steps: { keys: string[]; key: string; kernel: string; depth: number }[];
}

/** The history that a backward walks. */
export interface Tape {
  title: string;
  places: Place[];
  nodes: { name: string; saved: [string, string, number][]; places: Place[] }[];
  edges: [number, number][];
  /** Bytes of all saved tensors, each memory once. */
  bytes: number;
}
