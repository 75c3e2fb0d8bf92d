/** Between the least and the most of each step: a wash behind the line of means. */

import type uPlot from 'uplot';
import type { Column } from './samples';

export interface Envelope {
  readonly color: string;
  readonly times: readonly number[];
  readonly range: NonNullable<Column['range']>;
}

/** Draw each run of steps that have readings as one shape. */
export function drawEnvelopes(u: uPlot, envelopes: readonly Envelope[]): void {
  const { ctx } = u;
  const { left, top, width, height } = u.bbox;
  ctx.save();
  ctx.beginPath();
  ctx.rect(left, top, width, height);
  ctx.clip();
  ctx.globalAlpha = 0.22;
  for (const { color, times, range } of envelopes) {
    const { least, most } = range;
    const x = (step: number) => u.valToPos(times[step] ?? 0, 'x', true);
    const y = (value: number | undefined) => u.valToPos(value ?? 0, 'y', true);
    ctx.fillStyle = color;
    let begin = 0;
    for (let step = 0; step <= times.length; step += 1) {
      if (step < times.length && !Number.isNaN(most[step])) {
        continue;
      }
      if (step > begin) {
        ctx.beginPath();
        for (let at = begin; at < step; at += 1) {
          ctx.lineTo(x(at), y(most[at]));
        }
        for (let at = step - 1; at >= begin; at -= 1) {
          ctx.lineTo(x(at), y(least[at]));
        }
        ctx.fill();
      }
      begin = step + 1;
    }
  }
  ctx.restore();
}
