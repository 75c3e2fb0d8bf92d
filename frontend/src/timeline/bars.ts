/** A window of a timeline as the columns that Bokeh draws. */

import type { TimelineWindow } from '../shapes/protocol';
import type { Layout } from './lanes';

const NS_PER_MS = 1e6;
/** Of a row's height, above and below what it holds. */
const AIR = 0.1;
/** A step with little in it is still seen. */
const LEAST_BUSY = 0.15;
/** Of the server's palette. */
export const COLOURS = 20;

export type Columns = Record<string, Float64Array>;

/** The bars of a window; one that is narrower than a pixel gets that pixel. */
export function barColumns(
  drawn: TimelineWindow,
  { tops, heights }: Layout,
  pixelMs: number
): Columns {
  const isDrawn = (y: number) => (heights[y] ?? 0) > 0;
  const count = drawn.bars.reduce(
    (sum, row, y) => sum + (isDrawn(y) ? row.names.length : 0),
    0
  );
  const numbers = () => new Float64Array(count);
  const columns = {
    left: numbers(),
    right: numbers(),
    top: numbers(),
    bottom: numbers(),
    colour: numbers()
  };
  let at = 0;
  drawn.bars.forEach((row, y) => {
    if (!isDrawn(y)) {
      return;
    }
    const height = heights[y] ?? 0;
    const floor = (tops[y] ?? 0) + height * (1 - AIR);
    row.names.forEach((name, index) => {
      const startMs = (row.starts_ns[index] ?? 0) / NS_PER_MS;
      const lengthMs = (row.durations_ns[index] ?? 0) / NS_PER_MS;
      const busy = row.is_merged ? (row.busy_ratios[index] ?? 0) : 1;
      columns.left[at] = startMs;
      columns.right[at] = startMs + Math.max(lengthMs, pixelMs);
      columns.bottom[at] = floor;
      columns.top[at] =
        floor - height * (1 - 2 * AIR) * Math.max(busy, LEAST_BUSY);
      columns.colour[at] = name % COLOURS;
      at += 1;
    });
  });
  return columns;
}

/** Marks on the bars that hold what was searched for. */
export function foundColumns(
  drawn: TimelineWindow,
  { tops, heights }: Layout,
  pixelMs: number
): Columns {
  const marks = drawn.bars.flatMap((row, y) =>
    (heights[y] === 0 ? [] : row.found).map(index => {
      const startMs = (row.starts_ns[index] ?? 0) / NS_PER_MS;
      const lengthMs = (row.durations_ns[index] ?? 0) / NS_PER_MS;
      return [
        startMs,
        startMs + Math.max(lengthMs, pixelMs),
        tops[y] ?? 0
      ] as const;
    })
  );
  return {
    left: Float64Array.from(marks, ([left]) => left),
    right: Float64Array.from(marks, ([, right]) => right),
    top: Float64Array.from(marks, ([, , y]) => y),
    bottom: Float64Array.from(marks, ([, , y]) => y + 2 * AIR)
  };
}
