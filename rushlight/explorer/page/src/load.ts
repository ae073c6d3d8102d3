// Reads recordings from the page, or from a file that the user picked.

import type { Graph, Kernel, Machine, Recording, Stage, Unit } from "./recording";

const ELEMENT = / id="recordings">([A-Za-z0-9+/=\s]+)</; // the name of its element would end the one that this script is in

const SURROGATE = /\\u[dD][89a-fA-F]/;

/** Decode recordings from gzip-compressed JSON in base64. */
export async function decode(base64: string): Promise<Recording[]> {
  const text = atob(base64.trim());
  const bytes = new Uint8Array(text.length);
  for (let at = 0; at < text.length; at++) bytes[at] = text.charCodeAt(at);
  const stream = new Blob([bytes]).stream().pipeThrough(new DecompressionStream("gzip"));
  return recordingsOf(await new Response(stream).text());
}

/** Read the recordings of a file: a page like this one, or JSON. */
export async function readFile(file: File): Promise<Recording[]> {
  const text = await file.text();
  if (!text.trimStart().startsWith("<")) return recordingsOf(text);
  const found = ELEMENT.exec(text);
  if (!found?.[1]) throw new Error(`${file.name} is not a page of the explorer: it holds no recordings`);
  return decode(found[1]);
}

function recordingsOf(json: string): Recording[] {
  const value: unknown = SURROGATE.test(json) ? JSON.parse(json, wellFormed) : JSON.parse(json);
  const list = Array.isArray(value) ? value : [value];
  return list.map((each) => {
    if (typeof each !== "object" || each === null) throw new Error("a recording is an object");
    if ((each as Recording).version !== 1)
      throw new Error(`recordings of version ${String((each as Recording).version)} are not known`);
    return complete(each as Partial<Recording>);
  });
}

/** Replace lone surrogates, which cannot be shown. */
function wellFormed(_: string, value: unknown): unknown {
  return typeof value === "string" ? value.toWellFormed() : value;
}

/** Return the recording with missing fields set to defaults. */
function complete(given: Partial<Recording>): Recording {
  return {
    version: 1,
    title: given.title ?? "",
    command: given.command ?? "",
    made: given.made ?? "",
    machine: completeMachine(given.machine ?? {}),
    notes: given.notes ?? [],
    output: given.output ?? "",
    error: given.error ?? null,
    files: (given.files ?? []).map((file) => ({ ...file, text: file.text ?? "", name: file.name ?? file.path })),
    units: (given.units ?? []).map(completeUnit),
    calls: (given.calls ?? []).map((call) => ({ ...call, stages: call.stages ?? [] })),
    runs: given.runs ?? [],
    interpreted: given.interpreted ?? [],
    eager: (given.eager ?? []).map((call) => ({
      ...call,
      places: call.places ?? [],
      inputs: call.inputs ?? [],
      outputs: call.outputs ?? [],
      steps: call.steps ?? [],
    })),
    tapes: (given.tapes ?? []).map((tape) => ({
      ...tape,
      places: tape.places ?? [],
      nodes: (tape.nodes ?? []).map((node) => ({ ...node, saved: node.saved ?? [], places: node.places ?? [] })),
      edges: tape.edges ?? [],
    })),
  };
}

function completeMachine(given: Partial<Machine>): Machine {
  return {
    processor: given.processor ?? "",
    threads: given.threads ?? 1,
    python: given.python ?? "",
    rushlight: given.rushlight ?? "",
    bandwidth: given.bandwidth ?? null,
    flops: given.flops ?? null,
  };
}

function completeUnit(given: Partial<Unit>, index: number): Unit {
  return {
    id: given.id ?? index,
    kind: given.kind ?? "capture",
    name: given.name ?? "",
    place: given.place ?? null,
    last: given.last ?? null,
    began: given.began ?? 0,
    seconds: given.seconds ?? 0,
    status: given.status ?? "",
    why: given.why ?? "",
    captured: given.captured ?? [],
    broken: given.broken ?? [],
    untouched: given.untouched ?? [],
    breaks: (given.breaks ?? []).map((each) => ({ ...each, places: each.places ?? [] })),
    recompile: given.recompile ?? null,
    guards: given.guards ?? [],
    notes: given.notes ?? [],
    stages: (given.stages ?? []).map(completeStage),
    kernels: (given.kernels ?? []).map(completeKernel),
    memory: (given.memory ?? []).map((each) => ({ ...each, blocks: each.blocks ?? [] })),
    steps: given.steps ?? null,
  };
}

function completeStage(stage: Stage): Stage {
  return {
    ...stage,
    text: stage.text ?? "",
    places: stage.places ?? [],
    graph: completeGraph(stage.graph),
    base: stage.base ?? null,
  };
}

function completeGraph(graph: Graph | null | undefined): Graph | null {
  if (!graph) return null;
  const nodes = (graph.nodes ?? []).map((node) => ({ ...node, places: node.places ?? [], path: node.path ?? [] }));
  return { nodes, edges: graph.edges ?? [] };
}

function completeKernel(kernel: Kernel): Kernel {
  return {
    ...kernel,
    operators: kernel.operators ?? [],
    places: kernel.places ?? [],
    code: kernel.code ?? null,
    buffers: kernel.buffers ?? [],
    apart: kernel.apart ?? [],
    assembly: kernel.assembly ?? "",
  };
}
