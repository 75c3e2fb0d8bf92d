/** Names in slices: of those that are seen and wide enough. */

import type { TimelineWindow } from '../shapes/protocol';
import type { Frame } from './frame';
import { edges } from './frame';
import type { Layout } from './lanes';
import { rowPlace } from './lanes';

/** A name in a slice, in pixels from the frame's corner. */
export interface SliceName {
  readonly text: string;
  readonly left: number;
  readonly width: number;
  readonly middle: number;
  /** The number of the name, which decides the colour. */
  readonly name: number;
}

/** Narrower slices have no name, and lower rows none at all. */
const LEAST_WIDTH = 26;
const LEAST_HEIGHT = 13;
const PADDING = 3;
/** Fewer letters than these tell nothing. */
const LEAST_LETTERS = 2;

/** The slices of a row that have room for a name, without what is out of sight. */
export function namesInSlices(
  drawn: TimelineWindow,
  y: number,
  layout: Layout,
  frame: Frame
): SliceName[] {
  const row = drawn.bars[y];
  const { top, height } = rowPlace(layout, y, frame);
  if (row === undefined || row.is_merged || height < LEAST_HEIGHT) {
    return [];
  }
  const { seen, width } = frame;
  const names: SliceName[] = [];
  const { starts_ns: starts, durations_ns: lengths } = row;
  let at = Math.max(lastBefore(starts, seen.fromNs), 0);
  for (; at < starts.length && (starts[at] ?? 0) < seen.toNs; at += 1) {
    const [start, end] = edges(starts[at] ?? 0, lengths[at] ?? 0, frame);
    // a slice that begins out of sight has its name where it is seen
    const left = Math.max(start, 0);
    const room = Math.min(end, width) - left;
    const name = row.names[at] ?? 0;
    if (room >= LEAST_WIDTH) {
      names.push({
        text: shortName(drawn.names[name] ?? ''),
        left: left + PADDING,
        width: room - 2 * PADDING,
        middle: top + height / 2,
        name
      });
    }
  }
  return names;
}

/** The position of the last number that is not above; -1 if all are. */
export function lastBefore(ascending: readonly number[], most: number): number {
  let [low, high] = [0, ascending.length];
  while (low < high) {
    const middle = (low + high) >> 1;
    if ((ascending[middle] ?? 0) <= most) {
      low = middle + 1;
    } else {
      high = middle;
    }
  }
  return low - 1;
}

/** A C++ kernel without its return type and namespaces: these fill the slice. */
export function shortName(name: string): string {
  return name.startsWith('void ')
    ? name.slice(5).replace(/^(?:\w+::|\(anonymous namespace\)::){1,20}/, '')
    : name;
}

/** Cut a text to a width; nothing where too little of it would be left. */
export function fitted(
  text: string,
  width: number,
  measure: (text: string) => number
): string {
  const whole = measure(text);
  if (whole <= width) {
    return text;
  }
  const letters = Array.from(text);
  let most = Math.floor((letters.length * width) / whole);
  while (most >= LEAST_LETTERS) {
    const cut = `${letters.slice(0, most).join('')}…`;
    if (measure(cut) <= width) {
      return cut;
    }
    most -= 1;
  }
  return '';
}

/** Black or white, whichever is read better on a colour such as "#1f77b4". */
export function readableOn(color: string): string {
  const parts = [1, 3, 5].map(at => {
    const part = parseInt(color.slice(at, at + 2), 16) / 255;
    return part <= 0.04045 ? part / 12.92 : ((part + 0.055) / 1.055) ** 2.4;
  });
  const [red = 0, green = 0, blue = 0] = parts;
  const luminance = 0.2126 * red + 0.7152 * green + 0.0722 * blue;
  return luminance > 0.179 ? '#000000' : '#ffffff';
}
