/** The whole run in a strip, with a frame around the part that is seen. */

import { h } from '../core/dom';
import type { TimelineWindow } from '../shapes/protocol';
import { layOut } from './lanes';
import { PALETTE } from './paint';
import type { Part } from './reach';

/** As many steps as the strip has pixels, or about. */
export const MINIMAP_STEPS = 600;
/** The frame is drawn at least so wide, in pixels. */
const LEAST_FRAME = 8;
const LEAST_ALPHA = 0.25;

export class Minimap {
  private readonly canvas = h('canvas', { 'aria-hidden': 'true' });
  private readonly frame = h('div', { class: 'wb-minimap-frame' });
  readonly node = h(
    'div',
    {
      class: 'wb-minimap',
      role: 'img',
      'aria-label': 'The whole run; the frame is the part that is seen',
      pointerdown: event => this.pressed(event as PointerEvent),
      pointermove: event => this.dragged(event as PointerEvent),
      pointerup: () => {
        this.grip = null;
      },
      pointercancel: () => {
        this.grip = null;
      }
    },
    this.canvas,
    this.frame
  );

  /** @param show - a person drags another part into sight */
  constructor(private readonly show: (part: Part) => void) {}

  /** Draw the whole run. */
  draw(drawn: TimelineWindow): void {
    // all rows alike: what is collapsed is still a part of the run
    const none = new Set<string>();
    const layout = layOut(drawn.rows, { collapsed: none, pinned: none });
    const { canvas } = this;
    const { clientWidth: width, clientHeight: height } = this.node;
    this.pixels = width;
    const ratio = window.devicePixelRatio;
    canvas.width = Math.max(Math.round(width * ratio), 1);
    canvas.height = Math.max(Math.round(height * ratio), 1);
    this.whole = { fromNs: Math.min(drawn.first_ns, 0), toNs: drawn.last_ns };
    const pen = canvas.getContext('2d');
    if (pen === null) {
      return;
    }
    const perNs = canvas.width / (this.whole.toNs - this.whole.fromNs);
    const perUnit = canvas.height / layout.height;
    drawn.bars.forEach((row, y) => {
      const top = (layout.tops[y] ?? 0) * perUnit;
      const tall = (layout.heights[y] ?? 0) * perUnit;
      row.starts_ns.forEach((startNs, at) => {
        const busy = row.is_merged ? (row.busy_ratios[at] ?? 0) : 1;
        const name = row.names[at] ?? 0;
        pen.fillStyle = PALETTE[name % PALETTE.length] ?? '#000000';
        pen.globalAlpha = Math.max(busy, LEAST_ALPHA);
        const wide = (row.durations_ns[at] ?? 0) * perNs;
        const left = (startNs - this.whole.fromNs) * perNs;
        pen.fillRect(left, top, Math.max(wide, 1), Math.max(tall - 1, 1));
      });
    });
    this.mark(this.seen);
  }

  /** Put the frame around what is seen. */
  mark(seen: Part): void {
    this.seen = seen;
    const { left, width } = frameOf(seen, this.whole, this.pixels);
    this.frame.style.transform = `translateX(${left}px)`;
    this.frame.style.width = `${width}px`;
  }

  private pressed(event: PointerEvent): void {
    if (event.button !== 0) {
      return;
    }
    event.preventDefault();
    this.node.setPointerCapture(event.pointerId);
    const atNs = this.at(event);
    const { fromNs, toNs } = this.seen;
    // what is pressed within the frame stays under the mouse
    const isWithin = atNs >= fromNs && atNs <= toNs;
    this.grip = isWithin ? atNs - fromNs : (toNs - fromNs) / 2;
    this.dragged(event);
  }

  private dragged(event: PointerEvent): void {
    if (this.grip !== null) {
      const fromNs = this.at(event) - this.grip;
      const lengthNs = this.seen.toNs - this.seen.fromNs;
      this.show({ fromNs, toNs: fromNs + lengthNs });
    }
  }

  private at({ clientX }: PointerEvent): number {
    const { left, width } = this.node.getBoundingClientRect();
    const { fromNs, toNs } = this.whole;
    return fromNs + ((clientX - left) / width) * (toNs - fromNs);
  }

  /** Where the frame is held, in ns from its begin. */
  private grip: number | null = null;
  private pixels = 1;
  private whole: Part = { fromNs: 0, toNs: 1 };
  private seen: Part = { fromNs: 0, toNs: 1 };
}

/** Where the frame is in a strip, in pixels; it never leaves the strip. */
export function frameOf(
  seen: Part,
  whole: Part,
  pixels: number
): { readonly left: number; readonly width: number } {
  const perNs = pixels / (whole.toNs - whole.fromNs);
  const from = Math.max((seen.fromNs - whole.fromNs) * perNs, 0);
  const to = Math.min((seen.toNs - whole.fromNs) * perNs, pixels);
  const width = Math.min(Math.max(to - from, LEAST_FRAME), pixels);
  return { left: Math.max(Math.min(from, pixels - width), 0), width };
}
