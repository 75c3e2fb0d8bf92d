/** The mouse over a timeline: what it is over, and what is clicked. */

import type { Part } from './reach';
import type { Frame } from './plot';

/** A place in the frame. */
export interface Place {
  readonly atNs: number;
  /** From the top, as a share of the frame's height. */
  readonly share: number;
  /** So long is a pixel. */
  readonly pixelNs: number;
}

export interface PointerEvents {
  /** Null outside of the frame, and while something is dragged. */
  over(place: Place | null, event: MouseEvent): void;
  clicked(place: Place): void;
}

/** A press that moves further is a drag. */
const STILL_PIXELS = 4;

/** The place in a frame that a mouse points at; null beside it. */
export function placeAt(
  { left, top, width, height }: Frame,
  seen: Part,
  x: number,
  y: number
): Place | null {
  const across = (x - left) / width;
  const share = (y - top) / height;
  if (!(across >= 0 && across <= 1 && share >= 0 && share < 1)) {
    return null;
  }
  const lengthNs = seen.toNs - seen.fromNs;
  return {
    atNs: seen.fromNs + across * lengthNs,
    share,
    pixelNs: lengthNs / width
  };
}

/** Listen to the mouse over an element, whatever Bokeh makes of it too. */
export function followPointer(
  element: HTMLElement,
  view: () => { readonly frame: Frame; readonly seen: Part } | null,
  events: PointerEvents
): void {
  let pressed: { readonly x: number; readonly y: number } | null = null;
  const place = ({ clientX, clientY }: MouseEvent) => {
    const { left, top } = element.getBoundingClientRect();
    const now = view();
    return now && placeAt(now.frame, now.seen, clientX - left, clientY - top);
  };
  const listen = (name: string, listener: (event: MouseEvent) => void) =>
    element.addEventListener(name, event => listener(event as MouseEvent), {
      capture: true
    });
  listen('pointermove', event =>
    events.over(event.buttons === 0 ? place(event) : null, event)
  );
  listen('pointerleave', event => events.over(null, event));
  listen('pointerdown', ({ button, clientX, clientY }) => {
    pressed = button === 0 ? { x: clientX, y: clientY } : null;
  });
  listen('pointerup', event => {
    const { x, y } = pressed ?? { x: Infinity, y: 0 };
    const moved = Math.hypot(event.clientX - x, event.clientY - y);
    const at = moved <= STILL_PIXELS ? place(event) : null;
    pressed = null;
    if (at !== null) {
      events.clicked(at);
    }
  });
}
