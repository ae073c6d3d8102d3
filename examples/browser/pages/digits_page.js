// Names the digit that is drawn.
import { load, tensor } from "./digits.js";

const SIDE = 8, BLOCK = 4, FRAME = SIDE * BLOCK; // a pixel is the ink in a block of 4 x 4 points, as in scikit-learn's digits
const [drawing, seen, answer, bars, status] = ["drawing", "seen", "answer", "bars", "status"].map((id) => document.getElementById(id));
const pen = drawing.getContext("2d", { willReadFrequently: true });

function clear() {
  pen.fillStyle = "#fff";
  pen.fillRect(0, 0, drawing.width, drawing.height);
  answer.textContent = "";
  bars.replaceChildren();
  show(new Float32Array(SIDE * SIDE));
}

// Where ink is: left, top, width, height; null where there is none.
function boundsOfInk() {
  const { data, width, height } = pen.getImageData(0, 0, drawing.width, drawing.height);
  let [left, top, right, bottom] = [width, height, -1, -1];
  for (let y = 0; y < height; ++y)
    for (let x = 0; x < width; ++x)
      if (data[4 * (y * width + x)] < 128) {
        [left, top] = [Math.min(left, x), Math.min(top, y)];
        [right, bottom] = [Math.max(right, x), Math.max(bottom, y)];
      }
  return right < 0 ? null : [left, top, right - left + 1, bottom - top + 1];
}

// The drawing as 8 x 8 numbers from 0 to 1: what is drawn fills the frame's height.
function pixels() {
  const bounds = boundsOfInk();
  if (!bounds) return null;
  const frame = new OffscreenCanvas(FRAME, FRAME).getContext("2d", { willReadFrequently: true });
  frame.fillStyle = "#fff";
  frame.fillRect(0, 0, FRAME, FRAME);
  const [left, top, width, height] = bounds, scale = FRAME / Math.max(width, height);
  const [wide, high] = [width * scale, height * scale];
  frame.drawImage(drawing, left, top, width, height, (FRAME - wide) / 2, (FRAME - high) / 2, wide, high);
  const { data } = frame.getImageData(0, 0, FRAME, FRAME), made = new Float32Array(SIDE * SIDE);
  for (let y = 0; y < FRAME; ++y)
    for (let x = 0; x < FRAME; ++x)
      made[Math.floor(y / BLOCK) * SIDE + Math.floor(x / BLOCK)] += (1 - data[4 * (y * FRAME + x)] / 255) / BLOCK ** 2;
  return made;
}

function show(values) {
  const context = seen.getContext("2d"), size = seen.width / SIDE;
  values.forEach((value, place) => {
    context.fillStyle = `rgb(${Array(3).fill(Math.round(255 * (1 - value)))})`;
    context.fillRect((place % SIDE) * size, Math.floor(place / SIDE) * size, size, size);
  });
}

function showAnswer(logits) {
  const largest = Math.max(...logits), parts = logits.map((each) => Math.exp(each - largest));
  const total = parts.reduce((sum, each) => sum + each), best = logits.indexOf(largest);
  answer.textContent = best;
  bars.replaceChildren(...parts.map((part, digit) => {
    const row = document.createElement("div"), bar = document.createElement("div");
    row.className = digit === best ? "bar best" : "bar";
    bar.style.width = `${(100 * part) / total}%`;
    row.append(String(digit), bar, `${Math.round((100 * part) / total)}%`);
    return row;
  }));
}

function name(model) {
  const values = pixels();
  if (!values) return;
  show(values);
  const begin = performance.now();
  const { data } = model.forward(tensor(values, [1, 1, SIDE, SIDE]));
  status.textContent = `${(performance.now() - begin).toFixed(2)} ms`;
  showAnswer([...data]);
}

function listen(model) {
  const place = (event) => [(event.offsetX * drawing.width) / drawing.clientWidth, (event.offsetY * drawing.height) / drawing.clientHeight];
  drawing.addEventListener("pointerdown", (event) => {
    drawing.setPointerCapture(event.pointerId);
    [pen.lineWidth, pen.lineCap, pen.lineJoin, pen.strokeStyle] = [22, "round", "round", "#000"];
    pen.beginPath();
    pen.moveTo(...place(event));
  });
  drawing.addEventListener("pointermove", (event) => {
    if (!(event.buttons & 1)) return;
    pen.lineTo(...place(event));
    pen.stroke();
    name(model);
  });
}

clear();
document.getElementById("clear").addEventListener("click", clear);
try {
  listen(await load());
  status.textContent = "Ready.";
} catch (error) {
  status.className = "error";
  status.textContent = error.message;
}
