/** Paints a timeline on its canvas: axis, bars, names, what is marked and pinned. */

import { h } from '../core/dom';
import { durationNs } from '../core/format';
import type { TimelineDetails, TimelineWindow } from '../shapes/protocol';
import type { Arrow } from './arrows';
import { arrowsOf, boxOf } from './arrows';
import { ticks } from './axis';
import type { Frame } from './frame';
import { edges } from './frame';
import type { Layout } from './lanes';
import { AXIS_PIXELS, ROW_PIXELS, rowPlace } from './lanes';
import { fitted, namesInSlices, readableOn } from './names';
import type { Part } from './reach';

export interface Scene {
  readonly drawn: TimelineWindow;
  readonly layout: Layout;
  readonly frame: Frame;
  readonly pinned: Parameters<typeof boxOf>[0] | null;
  readonly details: TimelineDetails | null;
  readonly marked: Part | null;
}

/** Of bars, by their names: the ten hues of Tableau, each in a dark and a light tone. */
export const PALETTE: readonly string[] = [
  '#1f77b4',
  '#aec7e8',
  '#ff7f0e',
  '#ffbb78',
  '#2ca02c',
  '#98df8a',
  '#d62728',
  '#ff9896',
  '#9467bd',
  '#c5b0d5',
  '#8c564b',
  '#c49c94',
  '#e377c2',
  '#f7b6d2',
  '#7f7f7f',
  '#c7c7c7',
  '#bcbd22',
  '#dbdb8d',
  '#17becf',
  '#9edae5'
];
const INKS = PALETTE.map(readableOn);
const FOUND = '#d6006c';
const FOUND_PIXELS = 4;
const FONT = '11px system-ui, sans-serif';
/** Of a row's height, above and below what it holds. */
const AIR = 0.1;
/** A step with little in it is still seen. */
const LEAST_BUSY = 0.15;
const MOST_WIDTHS = 5000;
/** Of an arrow's head, and how far its curve bends, in pixels. */
const HEAD = 6;
const BEND = 30;

interface Inks {
  readonly text: string;
  readonly muted: string;
  readonly grid: string;
}

export class Painter {
  readonly node = h('canvas', {
    class: 'wb-timeline-canvas',
    'aria-hidden': 'true'
  });

  /** The page has other colours. */
  restyle(): void {
    this.inks = null;
  }

  paint(scene: Scene): void {
    const pen = this.node.getContext('2d');
    const { width, height } = scene.frame;
    if (pen === null || width <= 0) {
      return;
    }
    this.fit(scene.frame);
    const ratio = window.devicePixelRatio;
    pen.setTransform(ratio, 0, 0, ratio, 0, 0);
    pen.clearRect(0, 0, width, height);
    pen.font = FONT;
    pen.textBaseline = 'middle';
    this.inks ??= inksAt(this.node);
    paintAxis(pen, scene.frame, this.inks);
    const pinnedEnd = AXIS_PIXELS + scene.layout.pinned * ROW_PIXELS;
    this.paintRows(pen, scene, true, [AXIS_PIXELS, pinnedEnd]);
    this.paintRows(pen, scene, false, [pinnedEnd, height]);
    if (scene.layout.pinned > 0) {
      pen.fillStyle = this.inks.muted;
      pen.fillRect(0, pinnedEnd - 2, width, 1);
    }
    this.paintPinned(pen, scene, this.inks);
    paintMarked(pen, scene, this.inks);
  }

  /** Paint the pinned rows, or the others, where they are seen between two heights. */
  private paintRows(
    pen: CanvasRenderingContext2D,
    { drawn, layout, frame }: Scene,
    isPinned: boolean,
    [from, to]: readonly [number, number]
  ): void {
    pen.save();
    pen.beginPath();
    pen.rect(0, from, frame.width, Math.max(to - from, 0));
    pen.clip();
    drawn.bars.forEach((_, y) => {
      const { top, height } = rowPlace(layout, y, frame);
      const isHere = (layout.tops[y] ?? 0) < layout.pinned === isPinned;
      if (isHere && height > 0 && top < to && top + height > from) {
        paintBars(pen, drawn, y, top, height, frame);
        this.paintNames(pen, drawn, y, layout, frame);
      }
    });
    pen.restore();
  }

  private paintNames(
    pen: CanvasRenderingContext2D,
    ...where: Parameters<typeof namesInSlices>
  ): void {
    const measure = (text: string) => this.measure(pen, text);
    for (const slice of namesInSlices(...where)) {
      const text = fitted(slice.text, slice.width, measure);
      if (text !== '') {
        pen.fillStyle = INKS[slice.name % INKS.length] ?? '#000000';
        pen.fillText(text, slice.left, slice.middle);
      }
    }
  }

  private paintPinned(
    pen: CanvasRenderingContext2D,
    { pinned, details, layout, frame }: Scene,
    { text }: Inks
  ): void {
    const arrows = details && pinned ? arrowsOf(details, layout, frame) : [];
    // for who can't see the canvas, and for tests
    this.node.dataset['arrows'] = String(arrows.length);
    const box = pinned && boxOf(pinned, layout, frame);
    if (box === null) {
      return;
    }
    pen.save();
    pen.beginPath();
    pen.rect(0, AXIS_PIXELS, frame.width, frame.height);
    pen.clip();
    pen.strokeStyle = pen.fillStyle = text;
    pen.lineWidth = 2;
    const { left, right, top, bottom } = box;
    pen.strokeRect(left, top + 1, right - left, bottom - top - 2);
    pen.lineWidth = 1.5;
    arrows.forEach(arrow => paintArrow(pen, arrow));
    pen.restore();
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

  /** Give the canvas the frame's size, where it has another. */
  private fit({ width, height }: Frame): void {
    const ratio = window.devicePixelRatio;
    const size = [
      Math.round(width * ratio),
      Math.round(height * ratio)
    ] as const;
    if (this.node.width !== size[0] || this.node.height !== size[1]) {
      [this.node.width, this.node.height] = size;
      this.node.style.height = `${height}px`;
    }
  }

  private inks: Inks | null = null;
  private readonly widths = new Map<string, number>();
}

/** Read the colours of the theme that holds now. */
function inksAt(element: Element): Inks {
  const style = getComputedStyle(element);
  const color = (name: string) => style.getPropertyValue(name).trim();
  return {
    text: color('--wb-text'),
    muted: color('--wb-text-2'),
    grid: color('--wb-grid')
  };
}

function paintAxis(
  pen: CanvasRenderingContext2D,
  frame: Frame,
  { muted, grid }: Inks
): void {
  for (const { x, text } of ticks(frame)) {
    pen.fillStyle = grid;
    pen.fillRect(x, AXIS_PIXELS, 1, frame.height);
    pen.fillStyle = muted;
    pen.fillRect(x, AXIS_PIXELS - 6, 1, 6);
    pen.fillText(text, x + 4, AXIS_PIXELS / 2);
  }
}

/** Paint the bars of a row that are seen, and marks on those that were found. */
function paintBars(
  pen: CanvasRenderingContext2D,
  drawn: TimelineWindow,
  y: number,
  top: number,
  height: number,
  frame: Frame
): void {
  const row = drawn.bars[y];
  if (row === undefined) {
    return;
  }
  const tall = height * (1 - 2 * AIR);
  const floor = top + height * (1 - AIR);
  const found = new Set(row.found);
  let before = -1;
  row.starts_ns.forEach((startNs, at) => {
    const [left, right] = edges(startNs, row.durations_ns[at] ?? 0, frame);
    // many share a pixel, and the first has painted it
    const isHidden = right <= before && !found.has(at);
    if (isHidden || right < 0 || left > frame.width) {
      return;
    }
    before = right;
    const busy = row.is_merged ? (row.busy_ratios[at] ?? 0) : 1;
    const high = tall * Math.max(busy, LEAST_BUSY);
    pen.fillStyle = PALETTE[(row.names[at] ?? 0) % PALETTE.length] ?? '#888888';
    pen.fillRect(left, floor - high, right - left, high);
    if (found.has(at)) {
      pen.fillStyle = FOUND;
      pen.fillRect(left, top, Math.max(right - left, 2), FOUND_PIXELS);
    }
  });
}

/** Paint the marked part over all rows, with its length on the axis. */
function paintMarked(
  pen: CanvasRenderingContext2D,
  { marked, frame }: Scene,
  { text }: Inks
): void {
  if (marked === null) {
    return;
  }
  const lengthNs = marked.toNs - marked.fromNs;
  const [left, right] = edges(marked.fromNs, lengthNs, frame);
  pen.save();
  pen.fillStyle = pen.strokeStyle = text;
  pen.globalAlpha = 0.12;
  pen.fillRect(left, AXIS_PIXELS, right - left, frame.height);
  pen.globalAlpha = 1;
  pen.setLineDash([4, 3]);
  pen.strokeRect(left + 0.5, -1, right - left - 1, frame.height + 2);
  pen.setLineDash([]);
  const words = durationNs(lengthNs);
  const from = Math.max(left, 0);
  const { width } = pen.measureText(words);
  if (width + 8 < Math.min(right, frame.width) - from) {
    pen.clearRect(from + 1, 1, width + 8, AXIS_PIXELS - 2);
    pen.fillText(words, from + 4, AXIS_PIXELS / 2);
  }
  pen.restore();
}

function paintArrow(pen: CanvasRenderingContext2D, { from, to }: Arrow): void {
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
