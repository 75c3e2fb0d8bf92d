/** Where memory is heading, drawn behind the newest reading of a live chart. */

import type uPlot from 'uplot';
import type { MemoryOutlook } from '../shapes/protocol';
import type { Span } from '../core/viewport';

/** Of the time that is seen, so much may lie ahead. */
const MOST_AHEAD = 0.5;

export class Forecast {
  /** Where the time axis ends: when memory is full, where that is forecast. */
  endMs = 0;
  private outlook: MemoryOutlook | null = null;
  private nowMs = 0;

  /** @param ask - gives what is known now; without it nothing is forecast */
  constructor(private readonly ask: () => MemoryOutlook | null = () => null) {}

  update({ fromMs, toMs }: Span, following: boolean): void {
    const outlook = following ? this.ask() : null;
    this.outlook = outlook?.full_in_s ? outlook : null;
    this.nowMs = toMs;
    const fullMs = 1000 * (this.outlook?.full_in_s ?? 0);
    this.endMs = toMs + Math.min(MOST_AHEAD * (toMs - fromMs), fullMs);
  }

  /** The forecast as a sentence; empty where there is none. */
  get words(): string {
    return this.outlook === null ? '' : `${this.outlook.sentence} `;
  }

  /** Draw a dashed line from now to the end of the time axis. */
  draw(u: uPlot, color: string): void {
    if (this.outlook === null) {
      return;
    }
    const { used_bytes, slope_bytes_per_s } = this.outlook;
    const aheadS = (this.endMs - this.nowMs) / 1000;
    const end = used_bytes + (slope_bytes_per_s ?? 0) * aheadS;
    const { ctx } = u;
    const x = (ms: number) => u.valToPos(ms, 'x', true);
    const y = (bytes: number) => u.valToPos(bytes, 'y', true);
    ctx.save();
    ctx.strokeStyle = color;
    ctx.lineWidth = 1.5 * devicePixelRatio;
    ctx.setLineDash([5 * devicePixelRatio, 3 * devicePixelRatio]);
    ctx.beginPath();
    ctx.moveTo(x(this.nowMs), y(used_bytes));
    ctx.lineTo(x(this.endMs), y(end));
    ctx.stroke();
    ctx.restore();
  }
}
