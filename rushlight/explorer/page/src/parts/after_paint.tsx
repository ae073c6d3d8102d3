import type { ComponentChildren } from "preact";
import { useEffect, useState } from "preact/hooks";

/** Children that take long: they come once what is around them is on the screen. */
export function AfterPaint({ children }: { children: () => ComponentChildren }) {
  const [painted, setPainted] = useState(false);
  useEffect(() => {
    const frame = requestAnimationFrame(() => setTimeout(() => setPainted(true)));
    return () => cancelAnimationFrame(frame);
  }, []);
  return painted ? children() : <div class="loading">Drawing …</div>;
}
