import { useComputed, useSignal } from "@preact/signals";
import { useEffect, useRef } from "preact/hooks";
import { searching } from "../keys";
import { search } from "../search";
import { index } from "../state";

const WAIT = 80; // milliseconds between a keystroke and the search

export function SearchBox() {
  const text = useSignal("");
  const settled = useSignal("");
  const chosen = useSignal(0);
  const list = useRef<HTMLDivElement>(null);
  const hits = useComputed(() => (searching.value && index.value ? search(index.value, settled.value) : []));
  useEffect(() => {
    const timer = setTimeout(() => {
      settled.value = text.value;
      chosen.value = 0;
    }, WAIT);
    return () => clearTimeout(timer);
  }, [text.value]);

  const open = (at: number) => {
    const hit = hits.value[at];
    if (!hit) return;
    hit.open();
    searching.value = false;
    (document.activeElement as HTMLElement | null)?.blur();
  };
  const move = (by: number) => {
    chosen.value = Math.min(Math.max(chosen.value + by, 0), hits.value.length - 1);
    list.current?.children[chosen.value]?.scrollIntoView({ block: "nearest" });
  };
  const pressed = (event: KeyboardEvent) => {
    if (event.key === "ArrowDown") move(1);
    else if (event.key === "ArrowUp") move(-1);
    else if (event.key === "Enter") open(chosen.value);
    else return;
    event.preventDefault();
  };
  return (
    <div class="search">
      <input
        id="search"
        type="search"
        placeholder="Search everything ( / )"
        aria-label="Search everything"
        value={text.value}
        onFocus={() => (searching.value = true)}
        onBlur={() => setTimeout(() => (searching.value = false), 150)}
        onInput={(event) => (text.value = event.currentTarget.value)}
        onKeyDown={pressed}
      />
      {searching.value && settled.value.trim() && (
        <div class="hits" role="listbox" ref={list}>
          {hits.value.map((hit, at) => (
            <button
              key={at}
              role="option"
              aria-selected={at === chosen.value}
              onMouseDown={(event) => event.preventDefault()}
              onClick={() => open(at)}
            >
              <span class="tag">{hit.kind}</span> <b>{hit.title}</b> <code>{hit.detail}</code>
            </button>
          ))}
          {!hits.value.length && <p class="faint">Nothing has “{settled.value}”.</p>}
        </div>
      )}
    </div>
  );
}
