/** Arrows from launches to the work that they put on a GPU, in pixels. */

import type { TimelineDetails, TimelineEvent } from '../shapes/protocol';
import type { Layout } from './lanes';
import type { FrameSize } from './names';
import type { Part } from './reach';

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
/** What is far out of sight is drawn from here: canvases lose digits. */
const FAR_PIXELS = 10_000;

/** Where an event is; null if its row is not drawn. */
export function boxOf(
  event: Pick<TimelineEvent, 'row' | 'start_ns' | 'duration_ns'>,
  layout: Layout,
  seen: Part,
  { width, height }: FrameSize
): Box | null {
  const rowHeight = layout.heights[event.row] ?? 0;
  if (rowHeight === 0) {
    return null;
  }
  const perNs = width / (seen.toNs - seen.fromNs);
  const x = (ns: number) =>
    Math.min(Math.max((ns - seen.fromNs) * perNs, -FAR_PIXELS), FAR_PIXELS);
  const left = x(event.start_ns);
  const right = x(event.start_ns + event.duration_ns);
  const perUnit = height / layout.height;
  const top = (layout.tops[event.row] ?? 0) * perUnit;
  return {
    left,
    right: Math.max(right, left + LEAST_WIDTH),
    top,
    bottom: top + rowHeight * perUnit
  };
}

/** The arrows of a pinned event: from its launch, or to what it launched. */
export function arrowsOf(
  { event, launch, launched }: TimelineDetails,
  layout: Layout,
  seen: Part,
  size: FrameSize
): Arrow[] {
  const pairs = [
    ...(launch === null ? [] : [[launch, event] as const]),
    ...launched.map(work => [event, work] as const)
  ];
  return pairs.flatMap(([call, work]) => {
    const from = boxOf(call, layout, seen, size);
    const to = boxOf(work, layout, seen, size);
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
