/** Arrows from launches to the work that they put on a GPU, in pixels. */

import type { TimelineDetails, TimelineEvent } from '../shapes/protocol';
import type { Frame } from './frame';
import { edges } from './frame';
import type { Layout } from './lanes';
import { rowPlace } from './lanes';

export interface Box {
  readonly left: number;
  readonly right: number;
  readonly top: number;
  readonly bottom: number;
}

export interface Arrow {
  readonly from: readonly [number, number];
  readonly to: readonly [number, number];
}

/** Narrower events are outlined as if they had so many pixels. */
const LEAST_WIDTH = 3;

/** Where an event is; null if its row is not drawn. */
export function boxOf(
  event: Pick<TimelineEvent, 'row' | 'start_ns' | 'duration_ns'>,
  layout: Layout,
  frame: Frame
): Box | null {
  const { top, height } = rowPlace(layout, event.row, frame);
  if (height === 0) {
    return null;
  }
  const [left, right] = edges(event.start_ns, event.duration_ns, frame);
  return {
    left,
    right: Math.max(right, left + LEAST_WIDTH),
    top,
    bottom: top + height
  };
}

/** The arrows of a pinned event: from its launch, or to what it launched. */
export function arrowsOf(
  { event, launch, launched }: TimelineDetails,
  layout: Layout,
  frame: Frame
): Arrow[] {
  const pairs = [
    ...(launch === null ? [] : [[launch, event] as const]),
    ...launched.map(work => [event, work] as const)
  ];
  return pairs.flatMap(([call, work]) => {
    const from = boxOf(call, layout, frame);
    const to = boxOf(work, layout, frame);
    return from === null || to === null ? [] : [between(from, to)];
  });
}

function between(from: Box, to: Box): Arrow {
  const isUp = to.top < from.top;
  return {
    from: [(from.left + from.right) / 2, isUp ? from.top : from.bottom],
    to: [to.left, isUp ? to.bottom : to.top]
  };
}
