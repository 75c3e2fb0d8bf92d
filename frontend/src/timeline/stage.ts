/** What a timeline is drawn on: the canvas, its lanes' labels, the strip of the run. */

import { h } from '../core/dom';
import type { TimelineEvent, TimelineWindow } from '../shapes/protocol';
import type { Frame, SeenRange } from './frame';
import { Gutter } from './gutter';
import type { Hit } from './hit';
import { hitAt } from './hit';
import type { Layout } from './lanes';
import { AXIS_PIXELS, layOut, ROW_PIXELS, rowAt } from './lanes';
import { Minimap } from './minimap';
import { lastBefore } from './names';
import { Painter } from './paint';
import type { Pin } from './pin';
import type { Place } from './pointer';
import { Pointer } from './pointer';
import type { Part } from './reach';
import { Tooltip } from './tooltip';

/** Of the window's height; further lanes are scrolled to. */
const MOST_HEIGHT = 0.7;
/** Before the page is laid out. */
const FIRST_PIXELS = 1000;

export interface StageEvents {
  /** There is another number of pixels. */
  resized(): void;
  /** A person has drawn a span. */
  marked(part: Part): void;
}

export class Stage {
  readonly minimap: Minimap;
  readonly node: HTMLElement;
  private readonly pointer: Pointer;

  /**
   * @param range - what is seen
   * @param pin - whose event is outlined, and set by a click
   */
  constructor(
    private readonly range: SeenRange,
    private readonly pin: Pin,
    private readonly events: StageEvents
  ) {
    this.minimap = new Minimap(part => range.show(part));
    this.node = h(
      'div',
      { class: 'wb-timeline-scroll', scroll: () => this.moved() },
      this.gutter.node,
      this.painter.node
    );
    this.pointer = new Pointer(this.painter.node, range, {
      over: (place, event) => this.tip(place, event),
      clicked: place => this.clicked(place),
      marked: (part, isDone) => {
        this.mark(part);
        if (isDone) {
          events.marked(part);
        }
      }
    });
    range.on_change([], () => this.moved());
    this.sizes.observe(this.painter.node);
  }

  dispose(): void {
    window.cancelAnimationFrame(this.request);
    this.sizes.disconnect();
    this.tooltip.remove();
  }

  get seen(): Part {
    return this.range.part;
  }

  /** How many pixels that has. */
  get pixels(): number {
    return this.width;
  }

  /** Draw a window in its lanes. */
  fill(drawn: TimelineWindow): void {
    this.drawn = drawn;
    this.layout = layOut(drawn.rows, this.gutter.states);
    this.gutter.place(this.layout);
    this.redraw();
  }

  /** Draw the whole run in the minimap. */
  fillMinimap(whole: TimelineWindow): void {
    this.whole = whole;
    this.minimap.draw(whole);
    this.minimap.mark(this.range.part);
  }

  /** Mark a part over all lanes, or none. */
  mark(part: Part | null): void {
    this.marked = part;
    this.redraw();
  }

  /** Zoom in or out at the pointer, or at the middle while it is elsewhere. */
  zoom(factor: number): void {
    this.range.zoom(factor, this.pointer.share);
  }

  /** Draw it in the theme's colours. */
  restyle(): void {
    this.painter.restyle();
    this.redraw();
  }

  /** Draw, at most once a frame, with the widths of the zoom that is seen then. */
  redraw(): void {
    window.cancelAnimationFrame(this.request);
    this.request = window.requestAnimationFrame(() => {
      const { drawn, layout, frame, marked } = this;
      if (drawn !== null && layout !== null && frame !== null) {
        const { pinned, details } = this.pin;
        this.minimap.mark(frame.seen);
        this.painter.paint({ drawn, layout, frame, pinned, details, marked });
      }
    });
  }

  /**
   * Give the event before or after the pinned one on its row, else the first that is seen.
   * @returns null where there is none, or bars of many events stand there
   */
  neighbour(by: 1 | -1): Omit<TimelineEvent, 'name'> | null {
    const { drawn, layout } = this;
    const { pinned } = this.pin;
    const row =
      pinned?.row ??
      drawn?.bars.findIndex(
        (bars, y) => !bars.is_merged && (layout?.heights[y] ?? 0) > 0
      );
    const bars = row === undefined ? undefined : drawn?.bars[row];
    if (row === undefined || bars === undefined || bars.is_merged) {
      return null;
    }
    const { starts_ns: starts, durations_ns: lengths } = bars;
    const at =
      pinned === null
        ? lastBefore(starts, this.seen.fromNs) + 1
        : lastBefore(starts, pinned.start_ns) + by;
    const startNs = starts[at];
    return startNs === undefined
      ? null
      : { row, start_ns: startNs, duration_ns: lengths[at] ?? 0 };
  }

  private get frame(): Frame | null {
    const { layout, width } = this;
    if (layout === null || width === 0) {
      return null;
    }
    const height = AXIS_PIXELS + layout.height * ROW_PIXELS;
    const most = MOST_HEIGHT * window.innerHeight;
    return {
      seen: this.range.part,
      width,
      height: Math.ceil(Math.min(height, most)),
      scroll: this.node.scrollTop
    };
  }

  private moved(): void {
    this.tooltip.hide();
    this.redraw();
  }

  private resized(width: number): void {
    if (width > 0 && width !== this.width) {
      this.width = width;
      if (this.whole !== null) {
        this.fillMinimap(this.whole);
      }
      this.redraw();
      this.events.resized();
    }
  }

  private tip(place: Place | null, event: MouseEvent): void {
    const hit = place && this.hit(place);
    if (hit) {
      this.tooltip.show(hit, event);
    } else {
      this.tooltip.hide();
    }
  }

  private clicked(place: Place): void {
    const hit = this.hit(place);
    // a bar of many events has no details
    if (hit?.merged === null) {
      const { row, startNs, lengthNs } = hit;
      void this.pin.set({ row, start_ns: startNs, duration_ns: lengthNs });
    }
  }

  private hit({ x, y }: Place): Hit | null {
    const { drawn, layout, frame } = this;
    const row = layout && frame && rowAt(layout, y, frame);
    return drawn === null || frame === null || row === null
      ? null
      : hitAt(drawn, row, x, frame);
  }

  private readonly gutter = new Gutter(() => {
    if (this.drawn !== null) {
      this.fill(this.drawn);
    }
  });
  private readonly painter = new Painter();
  private readonly tooltip = new Tooltip();
  private readonly sizes = new ResizeObserver(([entry]) =>
    this.resized(Math.floor(entry?.contentRect.width ?? 0))
  );
  private width = FIRST_PIXELS;
  private drawn: TimelineWindow | null = null;
  private whole: TimelineWindow | null = null;
  private layout: Layout | null = null;
  private marked: Part | null = null;
  private request = 0;
}
