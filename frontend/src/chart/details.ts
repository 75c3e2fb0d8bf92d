/**
 * Steps for what the store does not hold: the server sums its history up.
 *
 * What came last is drawn until the next has come, so nothing blinks. Charts ask
 * with each draw; a request goes out when they have settled, one for each device.
 */

import type { History } from '../history';
import type { Samples } from './samples';
import { detailSamples } from './samples';
import type { Span } from './viewport';

/** About one for each second pixel of a wide chart. */
const MOST_STEPS = 600;
/** A wheel turns in many small steps. */
const SETTLE_MS = 120;
/** A span that follows now is asked for again this often at most. */
const REFRESH_MS = 2_000;
/** A request that failed is made again after so long. */
const RETRY_MS = 5_000;

/** What is here of one device, and what was asked for. */
interface Shelf {
  readonly metrics: Set<string>;
  wanted: Span;
  requested: Span | null;
  askedMetrics: number;
  samples: Samples | null;
}

export class Details {
  /** Why the last request failed, in words; empty if it did not. */
  problem = '';

  /** @param arrived - called when there is something new to draw or to say */
  constructor(
    private readonly history: History,
    private readonly rateHz: () => number,
    private readonly arrived: () => void,
    private readonly retryMs = RETRY_MS
  ) {}

  /** The newest steps of a device, null until some came. */
  samples(
    device: string,
    metrics: readonly string[],
    span: Span,
    following: boolean
  ): Samples | null {
    const shelf = this.shelf(device, span);
    metrics.forEach(metric => shelf.metrics.add(metric));
    shelf.wanted = span;
    this.following = following;
    if (isStale(shelf, following)) {
      this.timer ||= window.setTimeout(() => this.ask(), SETTLE_MS);
    }
    return shelf.samples;
  }

  /** Forget everything, and what is still on its way. */
  clear(): void {
    window.clearTimeout(this.timer);
    this.timer = 0;
    this.shelves.clear();
  }

  private shelf(device: string, span: Span): Shelf {
    let shelf = this.shelves.get(device);
    if (shelf === undefined) {
      shelf = {
        metrics: new Set(),
        wanted: span,
        requested: null,
        askedMetrics: 0,
        samples: null
      };
      this.shelves.set(device, shelf);
    }
    return shelf;
  }

  private ask(): void {
    this.timer = 0;
    for (const [device, shelf] of this.shelves) {
      if (isStale(shelf, this.following)) {
        void this.fetch(device, shelf);
      }
    }
  }

  private async fetch(device: string, shelf: Shelf): Promise<void> {
    const span = (shelf.requested = shelf.wanted);
    shelf.askedMetrics = shelf.metrics.size;
    const lengthMs = span.toMs - span.fromMs;
    // two readings a step: none is empty only because it is short
    const steps = Math.floor((lengthMs * this.rateHz()) / 1000 / 2);
    try {
      const detail = await this.history.detail(
        device,
        [...shelf.metrics],
        span,
        Math.min(MOST_STEPS, Math.max(1, steps))
      );
      if (shelf.requested !== span) {
        return;
      }
      shelf.samples = detailSamples(detail);
      this.problem = '';
    } catch (error) {
      this.problem = `What is older than ten minutes can't be shown. ${(error as Error).message}`;
      window.setTimeout(() => this.retry(device, shelf, span), this.retryMs);
    }
    if (this.shelves.get(device) === shelf) {
      this.arrived();
    }
  }

  /** Ask again for a span, if it is wanted still. */
  private retry(device: string, shelf: Shelf, span: Span): void {
    if (this.shelves.get(device) === shelf && shelf.requested === span) {
      shelf.requested = null;
      this.arrived();
    }
  }

  private readonly shelves = new Map<string, Shelf>();
  private timer = 0;
  private following = true;
}

/** Whether a device's steps, or those on their way, are not those wanted now. */
function isStale(shelf: Shelf, following: boolean): boolean {
  const { requested, wanted } = shelf;
  if (requested === null || shelf.askedMetrics !== shelf.metrics.size) {
    return true;
  }
  const lengthMs = wanted.toMs - wanted.fromMs;
  if (Math.abs(requested.toMs - requested.fromMs - lengthMs) > 1) {
    return true;
  }
  const behindMs = Math.abs(wanted.toMs - requested.toMs);
  return following
    ? behindMs >= Math.max(REFRESH_MS, lengthMs / MOST_STEPS)
    : behindMs > 1;
}
