// A drawing that the user pans by dragging and zooms with the wheel.

import type { ComponentChildren } from "preact";
import { forwardRef } from "preact/compat";
import { useEffect, useImperativeHandle, useRef } from "preact/hooks";
import type { Placed } from "./layout";

export interface CanvasHandle {
  fit: () => void;
  /** Move a box into the middle; `show` does so only if the box is off the screen. */
  centre: (box: Placed) => void;
  show: (box: Placed) => void;
}

interface Properties {
  width: number;
  height: number;
  label: string;
  children: ComponentChildren;
}

const LARGEST = 2;
const MIN_FIT = 0.7; // the smallest zoom with readable text: a larger graph is shown from its top instead
const MIN_DRAG = 4; // pixels of movement that make a press a drag, not a click

export const Canvas = forwardRef<CanvasHandle, Properties>(({ width, height, label, children }, handle) => {
  const svg = useRef<SVGSVGElement>(null);
  const inner = useRef<SVGGElement>(null);
  const view = useRef({ x: 0, y: 0, scale: 1 });

  const apply = () => {
    const { x, y, scale } = view.current;
    inner.current!.setAttribute("transform", `translate(${x},${y}) scale(${scale})`);
  };
  const fit = (smallest = 0) => {
    const { clientWidth, clientHeight } = svg.current!;
    if (!clientWidth) return;
    const scale = Math.max(Math.min(clientWidth / width, clientHeight / height, 1.15), smallest);
    const top = height * scale <= clientHeight ? (clientHeight - height * scale) / 2 : 0;
    view.current = { x: (clientWidth - width * scale) / 2, y: Math.min(top, 40), scale };
    apply();
  };
  const centre = (box: Placed) => {
    const { clientWidth, clientHeight } = svg.current!;
    const scale = Math.max(view.current.scale, MIN_FIT);
    view.current = {
      x: clientWidth / 2 - (box.x + box.width / 2) * scale,
      y: clientHeight / 2 - (box.y + box.height / 2) * scale,
      scale,
    };
    apply();
  };
  const show = (box: Placed) => {
    if (!svg.current) return;
    const { x, y, scale } = view.current;
    const [left, top] = [x + box.x * scale, y + box.y * scale];
    const [right, bottom] = [left + box.width * scale, top + box.height * scale];
    const inside = left >= 0 && top >= 0 && right < svg.current!.clientWidth && bottom < svg.current!.clientHeight;
    if (!inside) centre(box);
  };
  useImperativeHandle(handle, () => ({ fit, centre, show }));
  useEffect(() => fit(MIN_FIT), [width, height]);
  useEffect(() => listen(svg.current!, view, apply), []);

  return (
    <svg class="canvas" ref={svg} role="img" aria-label={label}>
      <defs>
        <marker
          id="arrow"
          viewBox="0 0 8 8"
          refX="7"
          refY="4"
          markerWidth="9"
          markerHeight="9"
          markerUnits="userSpaceOnUse"
          orient="auto"
        >
          <path d="M0,0 L8,4 L0,8 z" />
        </marker>
      </defs>
      <g ref={inner}>{children}</g>
    </svg>
  );
});

type View = { current: { x: number; y: number; scale: number } };

function listen(svg: SVGSVGElement, view: View, apply: () => void): () => void {
  let from: { x: number; y: number; viewX: number; viewY: number; moved: boolean } | null = null;
  const wheel = (event: WheelEvent) => {
    event.preventDefault();
    const { left, top } = svg.getBoundingClientRect();
    const { x, y, scale } = view.current;
    const next = Math.min(Math.max(scale * Math.exp(-event.deltaY * 0.0015), 0.03), LARGEST);
    const [px, py] = [event.clientX - left, event.clientY - top];
    view.current = { x: px - ((px - x) * next) / scale, y: py - ((py - y) * next) / scale, scale: next };
    apply();
  };
  const down = (event: PointerEvent) => {
    from = { x: event.clientX, y: event.clientY, viewX: view.current.x, viewY: view.current.y, moved: false };
  };
  const move = (event: PointerEvent) => {
    if (!from) return;
    const [dx, dy] = [event.clientX - from.x, event.clientY - from.y];
    from.moved ||= Math.hypot(dx, dy) > MIN_DRAG;
    view.current = { ...view.current, x: from.viewX + dx, y: from.viewY + dy };
    apply();
  };
  const up = () => {
    if (from?.moved) svg.addEventListener("click", (event) => event.stopPropagation(), { capture: true, once: true });
    from = null;
  };
  const controller = new AbortController();
  const { signal } = controller;
  svg.addEventListener("wheel", wheel, { passive: false, signal });
  svg.addEventListener("pointerdown", down, { signal });
  addEventListener("pointermove", move, { signal });
  addEventListener("pointerup", up, { signal });
  return () => controller.abort();
}
