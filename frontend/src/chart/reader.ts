/** Reading and selecting on a chart with the keyboard. */

import type uPlot from 'uplot';
import type { Gestures } from './gestures';
import type { Span } from '../core/viewport';

/** From one end to the other in this many steps, or in single samples. */
const STEPS = 100;

/** The plot that is read, and the span that it shows. */
interface Target {
  readonly plot: uPlot;
  readonly span: Span;
}

export class Reader {
  /**
   * @param target - what is read; null while nothing is drawn
   * @param open - shows what a click at this time would show
   */
  constructor(
    private readonly gestures: Gestures | null,
    private readonly target: () => Target | null,
    private readonly open: (ms: number) => void
  ) {}

  get isReading(): boolean {
    return this.atMs !== null;
  }

  stop(): void {
    this.atMs = null;
    this.anchorMs = null;
    this.target()?.plot.setCursor({ left: -10, top: -10 });
  }

  /** Arrows read, with shift they select; Enter tells about it or opens a cell. */
  key(event: KeyboardEvent): void {
    const { key, shiftKey, ctrlKey, metaKey, altKey } = event;
    if (ctrlKey || metaKey || altKey) {
      return;
    }
    if (key === 'ArrowLeft' || key === 'ArrowRight') {
      this.move(key === 'ArrowLeft' ? -1 : 1, shiftKey);
    } else if (key === 'Enter' && this.anchorMs !== null) {
      this.gestures?.finish();
    } else if (key === 'Enter' && this.atMs !== null) {
      this.open(this.atMs);
    } else {
      return;
    }
    event.preventDefault();
    event.stopPropagation();
  }

  private move(direction: -1 | 1, selects: boolean): void {
    const target = this.target();
    if (target === null) {
      return;
    }
    const { plot, span } = target;
    const lengthMs = span.toMs - span.fromMs;
    const before =
      this.atMs !== null && this.atMs >= span.fromMs && this.atMs <= span.toMs
        ? this.atMs
        : span.toMs;
    this.atMs = nextSample(plot, before, direction, lengthMs / STEPS);
    if (selects && this.gestures !== null) {
      this.anchorMs ??= before;
      this.gestures.mark({
        fromMs: Math.min(this.anchorMs, this.atMs),
        toMs: Math.max(this.anchorMs, this.atMs)
      });
    } else {
      this.anchorMs = null;
    }
    if (this.atMs < span.fromMs) {
      this.gestures?.pan(-0.5);
    } else if (this.atMs > span.toMs) {
      this.gestures?.pan(0.5);
    } else {
      // what is read must not move away
      this.gestures?.show(span);
    }
    this.point();
  }

  /** Put the cursor where it reads; after each draw, too. */
  point(): void {
    const { plot } = this.target() ?? {};
    if (plot !== undefined && this.atMs !== null) {
      plot.setCursor({
        left: plot.valToPos(this.atMs, 'x'),
        top: plot.over.clientHeight / 2
      });
    }
  }

  private atMs: number | null = null;
  /** Where the selection began. */
  private anchorMs: number | null = null;
}

/** The time of the sample that lies a step on, or just a step on where none is. */
function nextSample(
  { data: [times] }: uPlot,
  fromMs: number,
  direction: -1 | 1,
  stepMs: number
): number {
  const wanted = fromMs + direction * stepMs;
  const beyond = [...times].filter(ms =>
    direction > 0 ? ms > fromMs : ms < fromMs
  );
  const nearest = beyond.reduce(
    (best, ms) => (Math.abs(ms - wanted) < Math.abs(best - wanted) ? ms : best),
    Infinity
  );
  return Number.isFinite(nearest) ? nearest : wanted;
}
