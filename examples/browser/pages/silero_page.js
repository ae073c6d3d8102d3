// Finds speech in a sound file, or in what the microphone hears.
import { load, tensor } from "./silero.js";

const RATE = 16000, CHUNK = 512;
// Speech begins where the probability is at least BEGINS, and ends where it stays below ENDS for SILENT_CHUNKS.
const BEGINS = 0.5, ENDS = 0.35, SILENT_CHUNKS = 4, FEWEST_CHUNKS = 8;
const [sound, parts, status, file, microphone] = ["sound", "parts", "status", "file", "microphone"].map((id) => document.getElementById(id));

// What has been heard: the loudest sample of each chunk, its probability of speech, and the chunks where speech begins and ends.
class Hearing {
  constructor(model) {
    this.model = model;
    [this.peaks, this.probabilities, this.found] = [[], [], []];
    [this.begin, this.last] = [-1, -1];
    model.reset();
  }

  hear(chunk) {
    const at = this.probabilities.length, probability = this.model.forward(tensor(chunk, [1, CHUNK]), RATE).data[0];
    this.peaks.push(chunk.reduce((most, sample) => Math.max(most, Math.abs(sample)), 0));
    this.probabilities.push(probability);
    if (probability >= ENDS && this.begin >= 0) this.last = at;
    if (probability >= BEGINS) {
      if (this.begin < 0) this.begin = at;
      this.last = at;
    }
    if (this.begin >= 0 && at - this.last >= SILENT_CHUNKS) this.end();
  }

  end() {
    if (this.begin >= 0 && this.last + 1 - this.begin >= FEWEST_CHUNKS) this.found.push([this.begin, this.last + 1]);
    this.begin = -1;
  }

  // The parts that are speech, with the one that has not ended.
  speech() {
    const lasts = this.begin >= 0 && this.last + 1 - this.begin >= FEWEST_CHUNKS;
    return lasts ? [...this.found, [this.begin, this.last + 1]] : this.found;
  }
}

const seconds = (chunks) => ((chunks * CHUNK) / RATE).toFixed(2);

function draw(hearing) {
  const context = sound.getContext("2d"), { width, height } = sound, count = Math.max(hearing.peaks.length, 1), step = width / count;
  context.clearRect(0, 0, width, height);
  context.fillStyle = "#cfe0ff";
  for (const [begin, end] of hearing.speech()) context.fillRect(begin * step, 0, (end - begin) * step, height);
  context.fillStyle = "#7b8797";
  const loudest = Math.max(...hearing.peaks, 0.01);
  hearing.peaks.forEach((peak, at) => {
    const high = Math.max((peak / loudest) * height * 0.9, 1);
    context.fillRect(at * step, (height - high) / 2, Math.max(step * 0.8, 0.5), high);
  });
  context.strokeStyle = "#2f6fde";
  context.lineWidth = 2;
  context.beginPath();
  hearing.probabilities.forEach((probability, at) => context.lineTo((at + 0.5) * step, height - 4 - probability * (height - 8)));
  context.stroke();
}

function list(hearing) {
  parts.replaceChildren(...hearing.speech().map(([begin, end]) => {
    const item = document.createElement("li");
    item.textContent = `${seconds(begin)} to ${seconds(end)} s`;
    return item;
  }));
}

async function hearFile(model, chosen) {
  const context = new OfflineAudioContext(1, 1, RATE); // which decodes to this rate
  const decoded = await context.decodeAudioData(await chosen.arrayBuffer());
  const samples = decoded.getChannelData(0), hearing = new Hearing(model), begin = performance.now();
  for (let at = 0; at < samples.length; at += CHUNK) {
    const chunk = new Float32Array(CHUNK);
    chunk.set(samples.subarray(at, at + CHUNK));
    hearing.hear(chunk);
  }
  const took = performance.now() - begin;
  hearing.end();
  draw(hearing);
  list(hearing);
  const ratio = Math.round((1000 * decoded.duration) / took);
  status.textContent = `${decoded.duration.toFixed(1)} s of sound in ${took.toFixed(0)} ms, ${ratio} times as fast as it lasts.`;
}

// Passes on what the microphone hears, by the browser's audio thread.
const WORKLET = `registerProcessor("listener", class extends AudioWorkletProcessor {
  process([[samples]]) {
    if (samples) this.port.postMessage(samples.slice());
    return true;
  }
});`;

async function listen(model) {
  const stream = await navigator.mediaDevices.getUserMedia({ audio: true });
  const context = new AudioContext({ sampleRate: RATE });
  const address = URL.createObjectURL(new Blob([WORKLET], { type: "text/javascript" }));
  await context.audioWorklet.addModule(address);
  const listener = new AudioWorkletNode(context, "listener"), hearing = new Hearing(model);
  list(hearing);
  let chunk = new Float32Array(CHUNK), filled = 0;
  listener.port.onmessage = ({ data }) => {
    for (const sample of data) {
      chunk[filled++] = sample;
      if (filled < CHUNK) continue;
      hearing.hear(chunk);
      filled = 0;
      draw(hearing);
      list(hearing);
      status.textContent = hearing.probabilities.at(-1) >= BEGINS ? "Speech" : "Listening";
    }
  };
  context.createMediaStreamSource(stream).connect(listener).connect(context.destination); // which stays silent
  return () => {
    stream.getTracks().forEach((track) => track.stop());
    listener.port.onmessage = null;
    hearing.end();
    URL.revokeObjectURL(address);
    return context.close();
  };
}

// Runs what a user began; says what went wrong.
function guarded(action) {
  return async (...given) => {
    status.className = "note";
    try {
      await action(...given);
    } catch (error) {
      status.className = "error";
      status.textContent = error.message;
    }
  };
}

guarded(async () => {
  const model = await load();
  let stop = null;
  file.addEventListener("change", guarded(() => file.files[0] && hearFile(model, file.files[0])));
  microphone.addEventListener("click", guarded(async () => {
    microphone.disabled = file.disabled = true;
    try {
      if (stop) await stop();
      stop = stop ? null : await listen(model);
      status.textContent = stop ? "Listening" : "Ready.";
    } finally {
      microphone.disabled = false;
      file.disabled = stop !== null;
      microphone.textContent = stop ? "Stop" : "Microphone";
    }
  }));
  file.disabled = microphone.disabled = false;
  status.textContent = "Ready.";
})();
