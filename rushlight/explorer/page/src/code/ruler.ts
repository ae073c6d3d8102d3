// The strip beside a text that shows the positions of marked lines in the whole text.

import type { Block } from "../indices";

const MIN_HEIGHT = 2; // pixels of a mark

export function drawRuler(canvas: HTMLCanvasElement | null, blocks: Block[], levels: Uint8Array, lines: number): void {
  const context = canvas?.getContext("2d");
  if (!canvas || !context) return;
  const height = canvas.clientHeight;
  if (canvas.height !== height) canvas.height = height;
  context.clearRect(0, 0, canvas.width, height);
  const colours = getComputedStyle(canvas);
  const fills = ["", colours.getPropertyValue("--mark-soft-edge"), colours.getPropertyValue("--mark-edge")];
  const scale = Math.min(height / lines, 19);
  for (const level of [1, 2]) {
    context.fillStyle = fills[level]!;
    for (let at = 0; at < blocks.length; at++) {
      if (levels[at] !== level) continue;
      const { first, last } = blocks[at]!;
      context.fillRect(0, (first - 1) * scale, canvas.width, Math.max((last - first + 1) * scale, MIN_HEIGHT));
    }
  }
}
