import type { ComponentChildren } from "preact";
import { useEffect, useState } from "preact/hooks";

/** Children that are slow to render: they are added after their surroundings were painted. */
export function AfterPaint({ children }: { children: () => ComponentChildren }) {
  const [painted, setPainted] = useState(false);
  useEffect(() => {
    const frame = requestAnimationFrame(() => setTimeout(() => setPainted(true)));
    return () => cancelAnimationFrame(frame);
  }, []);
  return painted ? children() : <div class="loading">Drawing …</div>;
}
