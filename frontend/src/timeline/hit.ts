/** What of a window is drawn at a place. */

import type { TimelineWindow } from '../shapes/protocol';
import type { Frame } from './frame';
import { edges } from './frame';
import { lastBefore } from './names';

export interface Hit {
  readonly row: number;
  readonly name: string;
  readonly startNs: number;
  readonly lengthNs: number;
  /** Of a merged bar: events that begin in it, and the share that they cover. */
  readonly merged: { readonly events: number; readonly busy: number } | null;
  /** Events that are drawn over the same place. */
  readonly others: number;
}

/** A bar so many pixels away is met too. */
const NEAR_PIXELS = 1;

/** Find the event of a row whose bar is drawn at a distance from the left. */
export function hitAt(
  drawn: TimelineWindow,
  row: number,
  x: number,
  frame: Pick<Frame, 'seen' | 'width'>
): Hit | null {
  const bars = drawn.bars[row];
  if (bars === undefined) {
    return null;
  }
  const { starts_ns: starts, durations_ns: lengths } = bars;
  const away = (at: number) => {
    const [left, right] = edges(starts[at] ?? 0, lengths[at] ?? 0, frame);
    return Math.max(left - x, x - right, 0);
  };
  const { fromNs, toNs } = frame.seen;
  const pixelNs = (toNs - fromNs) / frame.width;
  let nearest = -1;
  let met = 0;
  // of a row none overlap, so those that are met stand together
  const lastNs = fromNs + (x + 2 * NEAR_PIXELS) * pixelNs;
  for (let at = lastBefore(starts, lastNs); at >= 0; at -= 1) {
    const far = away(at);
    if (far <= NEAR_PIXELS) {
      met += 1;
      if (nearest < 0 || far < away(nearest)) {
        nearest = at;
      }
    } else if ((starts[at] ?? 0) < fromNs + (x - 2 * NEAR_PIXELS) * pixelNs) {
      break;
    }
  }
  if (nearest < 0) {
    return null;
  }
  return {
    row,
    name: drawn.names[bars.names[nearest] ?? 0] ?? '',
    startNs: starts[nearest] ?? 0,
    lengthNs: lengths[nearest] ?? 0,
    merged: bars.is_merged
      ? {
          events: bars.counts[nearest] ?? 0,
          busy: bars.busy_ratios[nearest] ?? 0
        }
      : null,
    others: bars.is_merged ? 0 : met - 1
  };
}
