// A recording: the data that the page shows. `rushlight/explorer/recording.py` writes it as JSON.
//
// Times are seconds since the recording began; durations are seconds. Lines are counted from 1.

/** A line of a program: "FILE:LINE", FILE being an index into `Recording.files`. */
export type Place = string;

export interface Recording {
  version: 1;
  title: string;
  /** The command or the name of the block that was recorded. */
  command: string;
  /** The time of the recording: ISO 8601, local time. */
  made: string;
  machine: Machine;
  /** Sentences on data that the recording lacks, each with the reason: left out because … Often empty. */
  notes: string[];
  /** The end of what the program printed. */
  output: string;
  /** The traceback with which the program ended. */
  error: string | null;
  files: SourceFile[];
  units: Unit[];
  calls: Call[];
  runs: GraphRuns[];
  interpreted: InterpretedRuns[];
  eager: EagerCall[];
  tapes: Tape[];
}

export interface Machine {
  processor: string;
  threads: number;
  python: string;
  rushlight: string;
  /** The machine's measured limits: bytes and floating-point operations per second; null if nothing was timed. */
  bandwidth: number | null;
  flops: number | null;
}

export interface SourceFile {
  path: string;
  /** The shortest end of the path that no other file here has. */
  name: string;
  /** Empty if the file could not be read or was left out. */
  text: string;
  /** Whether the file is the user's own, not part of an installed package. */
  own: boolean;
}

/** A unit of compilation: one capture of a Python function, or a method of TorchScript. */
export interface Unit {
  id: number;
  kind: "capture" | "script";
  name: string;
  /** The function's first line; null if no source is known. */
  place: Place | null;
  /** The function's last line in that file. */
  last: number | null;
  began: number;
  seconds: number;
  /** "compiled", "kept" (compiled before the recording), "eager" (runs as Python, `why` says why), "interpreted" (TorchScript). */
  status: string;
  why: string;
  /** Lines of programs, grouped by their fate. A line that was captured and also broke the graph is only in `broken`. */
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
  /** The stage's name in RUSHLIGHT_LOGS: "graph", "joint", "loops", "fusion", "code", … */
  stage: string;
  title: string;
  language: "python" | "cpp" | "assembly" | "bytecode" | "torchscript" | "text";
  text: string;
  /** [first line, last line, places]: these lines of the text come from those lines of programs. Blocks do not overlap. */
  places: [number, number, Place[]][];
  at: number;
  seconds: number;
  graph: Graph | null;
  /** The id of the earlier stage whose text this one is compared with. */
  base: number | null;
}

export interface Graph {
  nodes: GraphNode[];
  /** [from, to], indices of nodes. */
  edges: [number, number][];
}

export interface GraphNode {
  name: string;
  /** The operation: "aten.mm", "input", "output", … */
  label: string;
  kind: "input" | "constant" | "call" | "output";
  /** Type and sizes: "f32[4, 16]". */
  detail: string;
  places: Place[];
  /** The modules around it, outermost first: ["encoder", "encoder.layer.0"]; [] if there are none. */
  path: string[];
  /** Its line in the stage's text. */
  line: number | null;
  /** The name of the kernel that computes the node. */
  kernel: string | null;
}

export interface Kernel {
  name: string;
  operators: string[];
  places: Place[];
  /** The title of the graph it belongs to: "forward", "backward", … */
  graph: string;
  /** Number of timed calls; the numbers below are sums over them. 0 if the kernel was not timed. */
  calls: number;
  seconds: number;
  bytes: number;
  flops: number;
  /** The time that the kernel would take at the machine's limits, divided by `seconds`. */
  share: number;
  /** [stage id of the C++, first line, last line]. */
  code: [number, number, number] | null;
  /** The buffers that the kernel computes, and for each neighbour that it was not fused with, the reason. */
  buffers: string[];
  apart: string[];
  assembly: string;
}

export interface Memory {
  /** The title of the graph. */
  graph: string;
  /** Bytes of the arena, and the sum of the sizes of all its blocks. */
  arena: number;
  unshared: number;
  /** [name, bytes, offset, first kernel, last kernel]: kernels as indices among those of the graph. */
  blocks: [string, number, number, number, number][];
}

/** One call of a compiled function. */
export interface Call {
  unit: number | null;
  name: string;
  at: number;
  seconds: number;
  /** "compile", "kept", "hit", "pack" (constants were computed and packed before a run), "recompile", "eager". */
  kind: string;
  /** Seconds by stage, in order, if the call compiled. */
  stages: [string, number][];
  /** Whether this is a run of one compiled graph whose kernels were timed: their times are part of `seconds`. */
  timed: boolean;
  /** The graph that ran: the `graph` of its kernels. Empty if the call did not run a single graph. */
  graph: string;
}

/** All runs of one compiled graph, also those that `calls` leaves out. */
export interface GraphRuns {
  unit: number | null;
  name: string;
  calls: number;
  /** The time of all runs, the part of it in kernels, and the median of the runs in `calls`. */
  seconds: number;
  kernels: number;
  median: number;
  /** The time before runs in which constants were computed and packed. */
  preparing: number;
}

/** All runs of one function or captured graph by an interpreter, without native code of its own. */
export interface InterpretedRuns {
  unit: number | null;
  name: string;
  calls: number;
  /** The time of all runs, and the part of it in compiled graphs that they called. */
  seconds: number;
  native: number;
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

/** How the dispatcher handled one eager operator. */
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

/** The tape that a backward pass walks. */
export interface Tape {
  title: string;
  places: Place[];
  nodes: { name: string; saved: [string, string, number][]; places: Place[] }[];
  edges: [number, number][];
  /** Bytes of all saved tensors; shared memory counts once. */
  bytes: number;
}
