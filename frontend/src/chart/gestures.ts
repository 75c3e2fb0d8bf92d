/** What hands do on a chart: drag, wheel, click, keys; the view says what follows. */

import type uPlot from 'uplot';
import type { Span } from '../core/viewport';

export interface Gestures {
  /** Whether a plain drag selects, as one with shift does. */
  readonly selecting: boolean;
  /** Show `factor` times as much around this share of the span. */
  zoom(factor: number, atRatio: number): void;
  pan(ratio: number): void;
  show(span: Span): void;
  /** What is about to be selected. */
  mark(span: Span): void;
  /** Tell about what is marked. */
  finish(): void;
}

/** A drag shorter than this is a click. */
const SHORTEST_DRAG_PX = 6;
/** One notch of a wheel is about a third more or less. */
const ZOOM_PER_PX = 0.003;
const LONGEST_WHEEL_PX = 120;

/** What uPlot reports as drawn over: zoom there, or select it. */
export function dragged(u: uPlot, gestures: Gestures): void {
  const { left, width } = u.select;
  const { event } = u.cursor;
  u.setSelect({ left: 0, top: 0, width: 0, height: 0 }, false);
  // the other charts, whose selection goes along, have no event of their own
  if (width < SHORTEST_DRAG_PX || !event) {
    return;
  }
  const span = {
    fromMs: u.posToVal(left, 'x'),
    toMs: u.posToVal(left + width, 'x')
  };
  if (event.shiftKey || gestures.selecting) {
    gestures.mark(span);
    gestures.finish();
  } else {
    gestures.show(span);
  }
}

/**
 * Wheel with Ctrl or ⌘ (which a pinch is, too) zooms, sideways or with shift pans.
 * A plain one is left to the page, which scrolls.
 */
export function listenToWheel(
  over: HTMLElement,
  gestures: Pick<Gestures, 'zoom' | 'pan'>
): void {
  over.addEventListener(
    'wheel',
    event => {
      const { deltaX, deltaY, ctrlKey, metaKey, shiftKey } = event;
      const across = shiftKey ? deltaX || deltaY : deltaX;
      if (ctrlKey || metaKey) {
        const px = Math.max(
          -LONGEST_WHEEL_PX,
          Math.min(LONGEST_WHEEL_PX, deltaY)
        );
        const { left, width } = over.getBoundingClientRect();
        gestures.zoom(
          Math.exp(px * ZOOM_PER_PX),
          (event.clientX - left) / width
        );
      } else if (Math.abs(across) > Math.abs(shiftKey ? 0 : deltaY)) {
        gestures.pan(across / over.clientWidth);
      } else {
        return;
      }
      event.preventDefault();
    },
    { passive: false }
  );
}

/** Call back for clicks that are not the end of a drag. */
export function listenToClicks(u: uPlot, click: (ms: number) => void): void {
  let downX = 0;
  u.over.addEventListener('mousedown', event => (downX = event.clientX));
  u.over.addEventListener('click', event => {
    if (Math.abs(event.clientX - downX) < SHORTEST_DRAG_PX) {
      const { left } = u.over.getBoundingClientRect();
      click(u.posToVal(event.clientX - left, 'x'));
    }
  });
}
