/** What of a window lies at a place. */

import type { TimelineWindow } from '../shapes/protocol';
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

/**
 * Find the event of a row at a moment.
 *
 * @param nearNs - an event so far away is met too: bars have at least a pixel
 */
export function hitAt(
  drawn: TimelineWindow,
  row: number,
  atNs: number,
  nearNs: number
): Hit | null {
  const bars = drawn.bars[row];
  if (bars === undefined) {
    return null;
  }
  const { starts_ns: starts, durations_ns: lengths } = bars;
  const away = (at: number) => {
    const startNs = starts[at] ?? 0;
    const endNs = startNs + (lengths[at] ?? 0);
    return Math.max(startNs - atNs, atNs - endNs, 0);
  };
  let nearest = -1;
  let met = 0;
  // of a row none overlap, so those that are met stand together
  for (let at = lastBefore(starts, atNs + nearNs); at >= 0; at -= 1) {
    if (away(at) > nearNs) {
      break;
    }
    met += 1;
    if (nearest < 0 || away(at) < away(nearest)) {
      nearest = at;
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
