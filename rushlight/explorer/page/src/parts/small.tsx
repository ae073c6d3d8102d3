// Small components that all views use.

import type { ComponentChildren } from "preact";
import { type KernelEntry, fileOf, lineOf, lineText, placeName } from "../indices";
import { type Level, hover, levelOf, levelOfLines, mark, markOf, togglePin } from "../marks";
import type { Place } from "../recording";
import { index, showFile } from "../state";

/** A message that says why a view is empty, and how to fill it. */
export function Empty({ title, children }: { title: string; children?: ComponentChildren }) {
  return (
    <div class="empty">
      <h3>{title}</h3>
      <p>{children}</p>
    </div>
  );
}

export function Panel({
  title,
  aside,
  children,
  class: name = "",
}: {
  title: ComponentChildren;
  aside?: ComponentChildren;
  children: ComponentChildren;
  class?: string;
}) {
  return (
    <section class={`panel ${name}`}>
      <header>
        <h3>{title}</h3>
        {aside && <span class="aside">{aside}</span>}
      </header>
      {children}
    </section>
  );
}

const LEVELS = ["", "is-soft", "is-marked"];

export function levelClass(level: Level): string {
  return LEVELS[level]!;
}

/** Handlers and a class that let an element show and set marks. */
export function marking(places: Place[], kernel: KernelEntry | null = null) {
  const level = kernel ? levelOf(mark.value, places, kernel) : levelOfLines(mark.value, places);
  const own = () => markOf(places, kernel);
  return {
    level: levelClass(level),
    handlers: { onMouseEnter: () => hover(own()), onMouseLeave: () => hover(null), onClick: () => togglePin(own()) },
  };
}

/** A line of a program, as a link to it. */
export function PlaceLink({ place, text = false }: { place: Place; text?: boolean }) {
  const { recording } = index.value!;
  const { level, handlers } = marking([place]);
  const show = (event: Event) => {
    event.stopPropagation();
    showFile(fileOf(place));
    handlers.onClick();
  };
  return (
    <button class={`place ${level}`} {...handlers} onClick={show}>
      <span class="place-file">{recording.files[fileOf(place)]?.name ?? "?"}</span>:{lineOf(place)}
      {text && <code>{lineText(recording, place)}</code>}
    </button>
  );
}

const MAX_PLACES = 3; // links in a table's cell

export function Places({ places }: { places: Place[] }) {
  const rest = places.length - MAX_PLACES;
  return (
    <span class="places">
      {places.slice(0, MAX_PLACES).map((place, at) => (
        <PlaceLink key={at} place={place} />
      ))}
      {rest > 0 && (
        <span class="faint" title={places.map((place) => placeName(index.value!.recording, place)).join("\n")}>
          +{rest}
        </span>
      )}
    </span>
  );
}

export function Bar({ share, tone = "heat" }: { share: number; tone?: string }) {
  return (
    <span class={`bar ${tone}`}>
      <i style={{ width: `${Math.min(Math.max(share, 0), 1) * 100}%` }} />
    </span>
  );
}

export function Toggle({
  on,
  title,
  onChange,
  children,
}: {
  on: boolean;
  title?: string;
  onChange: (on: boolean) => void;
  children: ComponentChildren;
}) {
  return (
    <button class="toggle" title={title} aria-pressed={on} onClick={() => onChange(!on)}>
      {children}
    </button>
  );
}
