/** What is drawn over the bars of a timeline, on a canvas of its own. */

import { h } from '../core/dom';
import type { TimelineDetails, TimelineWindow } from '../shapes/protocol';
import type { Arrow, Box } from './arrows';
import { arrowsOf, boxOf } from './arrows';
import { COLOURS } from './bars';
import type { Layout } from './lanes';
import type { SliceName } from './names';
import { fitted, namesInSlices, readableOn } from './names';
import type { Frame } from './plot';
import type { Part } from './reach';

export interface Scene {
  readonly drawn: TimelineWindow;
  readonly layout: Layout;
  readonly seen: Part;
  readonly frame: Frame;
  readonly pinned: Parameters<typeof boxOf>[0] | null;
  readonly details: TimelineDetails | null;
}

const FONT_PIXELS = 11;

export class Overlay {
  readonly node = h('canvas', {
    class: 'wb-timeline-overlay',
    'aria-hidden': 'true'
  });

  constructor(palette: readonly string[]) {
    this.inks = palette.map(readableOn);
  }

  draw(scene: Scene): void {
    const pen = this.node.getContext('2d');
    const { width, height } = scene.frame;
    if (pen === null || width <= 0 || height <= 0) {
      return;
    }
    const { drawn, layout, seen, frame, pinned } = scene;
    const slices = namesInSlices(drawn, layout, seen, frame);
    // a blank canvas takes no part in the page's painting while it is dragged
    const isBlank = slices.length === 0 && pinned === null;
    this.node.style.visibility = isBlank ? 'hidden' : 'visible';
    this.place(frame);
    if (isBlank && this.isBlank) {
      return;
    }
    this.isBlank = isBlank;
    const ratio = window.devicePixelRatio;
    pen.setTransform(ratio, 0, 0, ratio, 0, 0);
    pen.clearRect(0, 0, width, height);
    this.drawNames(pen, slices);
    this.drawPinned(pen, scene);
  }

  private drawPinned(pen: CanvasRenderingContext2D, scene: Scene): void {
    const { pinned, details, layout, seen, frame } = scene;
    if (pinned === null) {
      this.node.dataset['arrows'] = '0';
      return;
    }
    const box = boxOf(pinned, layout, seen, frame);
    const ink = getComputedStyle(this.node).color;
    pen.strokeStyle = pen.fillStyle = ink;
    pen.lineWidth = 2;
    if (box !== null) {
      outline(pen, box);
    }
    const arrows = details ? arrowsOf(details, layout, seen, frame) : [];
    pen.lineWidth = 1.5;
    arrows.forEach(arrow => drawArrow(pen, arrow));
    // for who can't see the canvas, and for tests
    this.node.dataset['arrows'] = String(arrows.length);
  }

  private drawNames(
    pen: CanvasRenderingContext2D,
    slices: readonly SliceName[]
  ): void {
    pen.font = `${FONT_PIXELS}px system-ui, sans-serif`;
    pen.textBaseline = 'middle';
    const measure = (text: string) => this.measure(pen, text);
    for (const slice of slices) {
      const text = fitted(slice.text, slice.width, measure);
      if (text !== '') {
        pen.fillStyle = this.inks[slice.name % COLOURS] ?? '#000000';
        pen.fillText(text, slice.left, slice.middle);
      }
    }
  }

  /** Measure a text once: a run has few names, and each is drawn often. */
  private measure(pen: CanvasRenderingContext2D, text: string): number {
    let width = this.widths.get(text);
    if (width === undefined) {
      if (this.widths.size >= MOST_WIDTHS) {
        this.widths.clear();
      }
      ({ width } = pen.measureText(text));
      this.widths.set(text, width);
    }
    return width;
  }

  /** Lay the canvas over the frame; setting its size would clear it each time. */
  private place({ left, top, width, height }: Frame): void {
    const { node } = this;
    const ratio = window.devicePixelRatio;
    const size = [
      Math.round(width * ratio),
      Math.round(height * ratio)
    ] as const;
    if (node.width !== size[0] || node.height !== size[1]) {
      [node.width, node.height] = size;
    }
    node.style.left = `${left}px`;
    node.style.top = `${top}px`;
    node.style.width = `${width}px`;
    node.style.height = `${height}px`;
  }

  private isBlank = false;
  private readonly inks: readonly string[];
  private readonly widths = new Map<string, number>();
}

const MOST_WIDTHS = 5000;
/** Of an arrow's head, and how far its curve bends, in pixels. */
const HEAD = 6;
const BEND = 30;

function outline(pen: CanvasRenderingContext2D, box: Box): void {
  pen.strokeRect(
    box.left,
    box.top + 1,
    box.right - box.left,
    box.bottom - box.top - 2
  );
}

function drawArrow(pen: CanvasRenderingContext2D, { from, to }: Arrow): void {
  const [x, y] = to;
  pen.beginPath();
  pen.moveTo(...from);
  pen.bezierCurveTo(from[0] + BEND, from[1], x - BEND, y, x, y);
  pen.stroke();
  pen.beginPath();
  pen.moveTo(x, y);
  pen.lineTo(x - HEAD, y - HEAD / 2);
  pen.lineTo(x - HEAD, y + HEAD / 2);
  pen.fill();
}
