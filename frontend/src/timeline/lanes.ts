/** Where the rows of a timeline are drawn: lanes, one below the other. */

import type { TimelineRow } from '../shapes/protocol';
import type { Frame } from './frame';

/** Rows of one track, in units of a row's usual height. */
export interface Lane {
  readonly label: string;
  readonly kind: string;
  readonly top: number;
  readonly height: number;
  readonly isCollapsed: boolean;
  /** It stands above the others, and is not scrolled. */
  readonly isPinned: boolean;
}

export interface Layout {
  /** From above to below. */
  readonly lanes: readonly Lane[];
  /** Of each row; a height of 0 is not drawn. */
  readonly tops: readonly number[];
  readonly heights: readonly number[];
  readonly height: number;
  /** What pinned lanes take of it, from above. */
  readonly pinned: number;
}

/** How lanes are shown, by their names, see `laneName`. */
export interface LaneStates {
  readonly collapsed: ReadonlySet<string>;
  readonly pinned: ReadonlySet<string>;
}

/** Of a row, and of the axis above the rows, in pixels. */
export const ROW_PIXELS = 20;
export const AXIS_PIXELS = 22;
/** A collapsed lane is one thin row. */
const COLLAPSED = 0.7;
const BETWEEN = 0.15;

/** Lay the rows out, pinned lanes first; a lane without events is left out. */
export function layOut(
  rows: readonly TimelineRow[],
  { collapsed, pinned }: LaneStates
): Layout {
  const firsts = rows.flatMap((row, at) =>
    at === 0 || row.level === 0 ? [at] : []
  );
  const tracks = firsts.map((first, at) => {
    const own = rows.slice(first, firsts[at + 1]);
    const { label = '', kind = '' } = own[0] ?? {};
    const name = laneName({ label, kind });
    const events = own.reduce((sum, row) => sum + row.events, 0);
    return { first, own, label, kind, name, events };
  });
  const isPinned = ({ name }: { readonly name: string }) => pinned.has(name);
  const filled = tracks.filter(({ events }) => events > 0);
  const lanes: Lane[] = [];
  const tops = rows.map(() => 0);
  const heights = rows.map(() => 0);
  let top = 0;
  let pinnedHeight = 0;
  const ordered = [
    ...filled.filter(isPinned),
    ...filled.filter(track => !isPinned(track))
  ];
  for (const track of ordered) {
    const { first, own, label, kind, name } = track;
    const isCollapsed = collapsed.has(name);
    const height = isCollapsed ? COLLAPSED : own.length;
    own.slice(0, isCollapsed ? 1 : own.length).forEach((_, level) => {
      tops[first + level] = top + level;
      heights[first + level] = Math.min(height, 1);
    });
    const states = { isCollapsed, isPinned: isPinned(track) };
    lanes.push({ label, kind, top, height, ...states });
    top += height + BETWEEN;
    pinnedHeight = states.isPinned ? top : pinnedHeight;
  }
  return {
    lanes,
    tops,
    heights,
    height: Math.max(top, 1),
    pinned: pinnedHeight
  };
}

/** What a lane is remembered by. */
export function laneName({
  label,
  kind
}: {
  readonly label: string;
  readonly kind: string;
}): string {
  return `${kind} ${label}`;
}

/** Where a row is in the frame, in pixels; a height of 0 is not drawn. */
export function rowPlace(
  { tops, heights, pinned }: Layout,
  row: number,
  { scroll }: Pick<Frame, 'scroll'>
): { readonly top: number; readonly height: number } {
  const top = tops[row] ?? 0;
  return {
    top: AXIS_PIXELS + top * ROW_PIXELS - (top < pinned ? 0 : scroll),
    height: (heights[row] ?? 0) * ROW_PIXELS
  };
}

/** The row at a height in the frame; null between lanes, and on the axis. */
export function rowAt(
  layout: Layout,
  y: number,
  frame: Pick<Frame, 'scroll'>
): number | null {
  const isPinned = y < AXIS_PIXELS + layout.pinned * ROW_PIXELS;
  const at = layout.tops.findIndex((unit, row) => {
    const { top, height } = rowPlace(layout, row, frame);
    const isAlike = unit < layout.pinned === isPinned;
    return isAlike && height > 0 && y >= top && y < top + height;
  });
  return at < 0 ? null : at;
}
