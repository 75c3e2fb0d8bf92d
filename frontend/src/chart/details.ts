/**
 * Steps for what the store does not hold: the server sums its history up.
 *
 * What came last is drawn until the next has come, so nothing blinks. Charts ask
 * with each draw; a request goes out when they have settled, one for each device.
 */

import type { Connection } from '../core/connection';
import type { History } from '../server/history';
import { Retry } from '../core/retry';
import type { Samples } from './samples';
import { detailSamples } from './samples';
import type { Span } from '../core/viewport';

/** About one for each second pixel of a wide chart. */
const MOST_STEPS = 600;
/** A wheel turns in many small steps. */
const SETTLE_MS = 120;
/** A span that follows now is asked for again this often at most. */
const REFRESH_MS = 2_000;
/** A request that failed is made again after so long, and at least so often. */
const RETRY_MS = 5_000;
const LONGEST_RETRY_MS = 160_000;

/** What is here of one device, and what was asked for. */
interface Shelf {
  readonly metrics: Set<string>;
  wanted: Span;
  requested: Span | null;
  askedMetrics: number;
  samples: Samples | null;
  /** Of the last request; one that was refused would be refused again. */
  state: 'asked' | 'answered' | 'failed' | 'refused';
  /** Whether the view followed now when it was made. */
  isOfNow: boolean;
  /** Why the last request that ended failed, in words; empty if it did not. */
  problem: string;
}

export class Details {
  /** @param arrived - called when there is something new to draw or to say */
  constructor(
    private readonly history: History,
    connection: Pick<Connection, 'listen'>,
    private readonly rateHz: () => number,
    private readonly arrived: () => void
  ) {
    this.retry = new Retry(
      connection,
      () => this.askAgain(),
      RETRY_MS,
      LONGEST_RETRY_MS
    );
  }

  /** Why a device's steps are missing, in words; empty where none are. */
  get problem(): string {
    const shelves = [...this.shelves.values()];
    return shelves.find(({ problem }) => problem !== '')?.problem ?? '';
  }

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
    const { problem } = this;
    this.forget();
    if (problem !== '') {
      this.arrived();
    }
  }

  dispose(): void {
    this.forget();
    this.retry.dispose();
  }

  private forget(): void {
    window.clearTimeout(this.timer);
    this.timer = 0;
    this.retry.cancel();
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
        samples: null,
        state: 'asked',
        isOfNow: false,
        problem: ''
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
    shelf.state = 'asked';
    shelf.isOfNow = this.following;
    const lengthMs = span.toMs - span.fromMs;
    // two readings a step: none is empty only because it is short
    const steps = Math.floor((lengthMs * this.rateHz()) / 1000 / 2);
    let problem = '';
    let failure: unknown = null;
    try {
      const detail = await this.history.detail(
        device,
        [...shelf.metrics],
        span,
        Math.min(MOST_STEPS, Math.max(1, steps))
      );
      if (this.isCurrent(device, shelf, span)) {
        shelf.samples = detailSamples(detail);
      }
    } catch (error) {
      failure = error;
      problem = `What is older than ten minutes can't be shown. ${(error as Error).message}`;
    }
    if (!this.isCurrent(device, shelf, span)) {
      return;
    }
    shelf.problem = problem;
    if (problem === '') {
      shelf.state = 'answered';
    } else {
      shelf.state = this.retry.failed(failure) ? 'failed' : 'refused';
    }
    if (![...this.shelves.values()].some(({ state }) => state === 'failed')) {
      this.retry.cancel();
      this.retry.succeeded();
    }
    this.arrived();
  }

  /** Whether a request is the last one of a device that is still there. */
  private isCurrent(device: string, shelf: Shelf, span: Span): boolean {
    return this.shelves.get(device) === shelf && shelf.requested === span;
  }

  /** Ask for what failed; a chart that is out of sight asks for nothing itself. */
  private askAgain(): void {
    for (const [device, shelf] of this.shelves) {
      if (shelf.state === 'failed') {
        void this.fetch(device, shelf);
      }
    }
  }

  private readonly retry: Retry;
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
  if (!following) {
    return behindMs > 1;
  }
  // time alone asks for no more while a request is on its way or has failed
  const isDue = shelf.state === 'answered' || !shelf.isOfNow;
  return isDue && behindMs >= Math.max(REFRESH_MS, lengthMs / MOST_STEPS);
}
