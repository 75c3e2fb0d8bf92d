/** Where the rows of a timeline are drawn: lanes, one below the other. */

import type { TimelineRow } from '../shapes/protocol';

/** Rows of one track, in units of a row's usual height. */
export interface Lane {
  readonly label: string;
  readonly kind: string;
  /** The position of its first row, and how many it has. */
  readonly first: number;
  readonly rows: number;
  readonly events: number;
  readonly top: number;
  readonly height: number;
  readonly isCollapsed: boolean;
}

export interface Layout {
  readonly lanes: readonly Lane[];
  /** Of each row; a height of 0 is not drawn. */
  readonly tops: readonly number[];
  readonly heights: readonly number[];
  readonly height: number;
}

/** A collapsed lane is one thin row. */
const COLLAPSED = 0.7;
const BETWEEN = 0.15;

/**
 * Lay the rows out; a lane without events is left out.
 *
 * @param collapsed - names of lanes, see `laneName`
 */
export function layOut(
  rows: readonly TimelineRow[],
  collapsed: ReadonlySet<string>
): Layout {
  const lanes: Lane[] = [];
  const tops = rows.map(() => 0);
  const heights = rows.map(() => 0);
  let top = 0;
  for (let first = 0; first < rows.length;) {
    let last = first + 1;
    while (last < rows.length && (rows[last]?.level ?? 0) > 0) {
      last += 1;
    }
    const own = rows.slice(first, last);
    const events = own.reduce((sum, row) => sum + row.events, 0);
    const { label = '', kind = '' } = rows[first] ?? {};
    if (events > 0) {
      const isCollapsed = collapsed.has(laneName({ label, kind }));
      const height = isCollapsed ? COLLAPSED : own.length;
      if (isCollapsed) {
        tops[first] = top;
        heights[first] = height;
      } else {
        own.forEach((_, level) => {
          tops[first + level] = top + level;
          heights[first + level] = 1;
        });
      }
      const counts = { first, rows: own.length, events };
      lanes.push({ label, kind, ...counts, top, height, isCollapsed });
      top += height + BETWEEN;
    }
    first = last;
  }
  return { lanes, tops, heights, height: Math.max(top - BETWEEN, 1) };
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

/** The row at a height; null between lanes. */
export function rowAt({ tops, heights }: Layout, y: number): number | null {
  const at = tops.findIndex((top, row) => {
    const height = heights[row] ?? 0;
    return height > 0 && y >= top && y < top + height;
  });
  return at < 0 ? null : at;
}
