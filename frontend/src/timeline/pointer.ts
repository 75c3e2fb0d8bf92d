/** The mouse over a timeline: what it is over, what is clicked, dragged and wheeled. */

import { listenToWheel } from '../chart/gestures';
import type { SeenRange } from './frame';
import { AXIS_PIXELS } from './lanes';
import type { Part } from './reach';

/** A place on the canvas, in pixels from its corner. */
export interface Place {
  readonly x: number;
  readonly y: number;
}

export interface PointerEvents {
  /** Null outside, and while something is dragged. */
  over(place: Place | null, event: MouseEvent): void;
  clicked(place: Place): void;
  /** A span is being drawn, or (`isDone`) has been. */
  marked(part: Part, isDone: boolean): void;
}

/** A press that moves further is a drag. */
const STILL_PIXELS = 4;

interface Press extends Place {
  readonly seen: Part;
  /** A span is drawn, instead of moving. */
  readonly isMark: boolean;
  isDrag: boolean;
}

export class Pointer {
  /** Where it is, as a share of the width; the middle while it is elsewhere. */
  share = 0.5;

  constructor(
    private readonly canvas: HTMLCanvasElement,
    private readonly range: SeenRange,
    private readonly events: PointerEvents
  ) {
    const listen = (name: string, listener: (event: PointerEvent) => void) =>
      canvas.addEventListener(name, event => listener(event as PointerEvent));
    listen('pointermove', event => this.moved(event));
    listen('pointerdown', event => this.pressed(event));
    listen('pointerup', event => this.released(event));
    listen('pointercancel', () => (this.press = null));
    listen('pointerleave', event => {
      this.share = 0.5;
      events.over(null, event);
    });
    listenToWheel(canvas, {
      zoom: (factor, share) => range.zoom(factor, share),
      pan: share => range.pan(share)
    });
  }

  private moved(event: PointerEvent): void {
    const place = this.place(event);
    this.share = place.x / this.canvas.clientWidth;
    const { press } = this;
    if (press === null) {
      this.events.over(place, event);
      return;
    }
    const away = Math.hypot(place.x - press.x, place.y - press.y);
    press.isDrag ||= away > STILL_PIXELS;
    if (press.isDrag) {
      this.events.over(null, event);
      this.drag(press, place.x, false);
    }
  }

  private drag(press: Press, x: number, isDone: boolean): void {
    const { fromNs, toNs } = press.seen;
    const perPixel = (toNs - fromNs) / this.canvas.clientWidth;
    if (press.isMark) {
      const [from, to] = [Math.min(press.x, x), Math.max(press.x, x)];
      const part = {
        fromNs: fromNs + from * perPixel,
        toNs: fromNs + to * perPixel
      };
      if (to > from) {
        this.events.marked(part, isDone);
      }
    } else {
      const by = (press.x - x) * perPixel;
      this.range.show({ fromNs: fromNs + by, toNs: toNs + by });
    }
  }

  private pressed(event: PointerEvent): void {
    if (event.button !== 0) {
      return;
    }
    this.canvas.setPointerCapture(event.pointerId);
    const place = this.place(event);
    const isMark = event.shiftKey || place.y < AXIS_PIXELS;
    const seen = this.range.part;
    this.press = { ...place, seen, isMark, isDrag: false };
  }

  private released(event: PointerEvent): void {
    const { press } = this;
    this.press = null;
    if (press === null) {
      return;
    }
    const place = this.place(event);
    if (!press.isDrag) {
      this.events.clicked(place);
    } else if (press.isMark) {
      this.drag(press, place.x, true);
    }
  }

  private place({ clientX, clientY }: MouseEvent): Place {
    const { left, top } = this.canvas.getBoundingClientRect();
    return { x: clientX - left, y: clientY - top };
  }

  private press: Press | null = null;
}
