import { type RefObject } from "preact";
import { useEffect, useRef, useState } from "preact/hooks";

interface Size {
  width: number;
  height: number;
}

/** Return a reference to an element, and the element's current size (0 before it is known). */
export function useSize(): [RefObject<HTMLDivElement | null>, Size] {
  const frame = useRef<HTMLDivElement>(null);
  const [size, setSize] = useState<Size>({ width: 0, height: 0 });
  useEffect(() => {
    const observer = new ResizeObserver(([entry]) => {
      const { width, height } = entry!.contentRect;
      setSize({ width: Math.floor(width), height: Math.floor(height) });
    });
    observer.observe(frame.current!);
    return () => observer.disconnect();
  }, []);
  return [frame, size];
}
