/** What lies behind the lines: executed cells, a selection, and what a gap was. */

import type uPlot from 'uplot';
import type { Colors } from '../core/theme';

/** A span of time with a name. */
export interface Mark {
  readonly fromMs: number;
  /** Null while it still runs. */
  readonly toMs: number | null;
  /** Which of the band colours; null draws nothing and is only told on hover. */
  readonly color: number | 'selection' | null;
  readonly label: string;
  /** What a click on it does. */
  readonly open?: () => void;
}

/** Gives the marks that touch a span, in the server's time. */
export type Marks = (fromMs: number, toMs: number) => readonly Mark[];

/** Height of the solid strip on top of a band, in CSS pixels. */
const STRIP = 3;

/** Draw the bands below everything else. */
export function drawMarks(
  u: uPlot,
  marks: readonly Mark[],
  colors: Colors
): void {
  const { ctx } = u;
  const { left, top, width, height } = u.bbox;
  const strip = STRIP * devicePixelRatio;
  ctx.save();
  for (const mark of marks) {
    const color =
      mark.color === null
        ? undefined
        : mark.color === 'selection'
          ? colors.text
          : colors.bands[mark.color % colors.bands.length];
    if (color === undefined) {
      continue;
    }
    const from = Math.max(left, u.valToPos(mark.fromMs, 'x', true));
    const to =
      mark.toMs === null
        ? left + width
        : Math.min(left + width, u.valToPos(mark.toMs, 'x', true));
    // a short cell stays visible
    const shown = Math.max(to - from, devicePixelRatio);
    ctx.fillStyle = color;
    ctx.globalAlpha = 0.12;
    ctx.fillRect(from, top, shown, height);
    ctx.globalAlpha = 0.9;
    if (mark.color === 'selection') {
      ctx.fillRect(from, top, devicePixelRatio, height);
      ctx.fillRect(from + shown, top, devicePixelRatio, height);
    } else {
      ctx.fillRect(from, top, shown, strip);
    }
  }
  ctx.restore();
}

/** The marks at one time, the latest begun first. */
export function marksAt(marks: readonly Mark[], ms: number): readonly Mark[] {
  return marks
    .filter(
      mark => mark.fromMs <= ms && (mark.toMs === null || ms <= mark.toMs)
    )
    .reverse();
}
