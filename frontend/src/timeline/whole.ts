/** Asks for all of a run, which the minimap shows: once, and again where it was lost. */

import type { Connection } from '../core/connection';
import type { TimelineWindow } from '../shapes/protocol';
import { Retry } from '../core/retry';
import { MINIMAP_STEPS } from './minimap';
import type { TimelineSource } from './source';
import { LONGEST_RETRY_MS, RETRY_MS } from './windows';

export interface WholeView {
  /** Draw all of the run. */
  draw(whole: TimelineWindow): void;
  /** It did not come: say why. */
  lost(why: string): void;
}

export class Whole {
  constructor(
    private readonly source: Pick<TimelineSource, 'window'>,
    connection: Pick<Connection, 'listen'>,
    private readonly view: WholeView
  ) {
    this.retry = new Retry(
      connection,
      () => void this.show(),
      RETRY_MS,
      LONGEST_RETRY_MS
    );
  }

  /** Draw it, of a run of which a window has come. */
  async show(drawn: TimelineWindow | null = this.drawn): Promise<void> {
    this.drawn = drawn;
    if (drawn === null) {
      return;
    }
    this.retry.cancel();
    const { first_ns: firstNs, last_ns: lastNs } = drawn;
    const isWhole = drawn.from_ns <= firstNs && drawn.to_ns >= lastNs;
    const all = { fromNs: Math.min(firstNs, 0), toNs: lastNs };
    try {
      this.whole ??= isWhole
        ? drawn
        : await this.source.window({ ...all, steps: MINIMAP_STEPS }, '');
    } catch (error) {
      if (!this.isDisposed) {
        this.view.lost(this.retry.words(error));
      }
      return;
    }
    if (!this.isDisposed) {
      this.retry.succeeded();
      this.view.draw(this.whole);
    }
  }

  dispose(): void {
    this.isDisposed = true;
    this.retry.dispose();
  }

  private readonly retry: Retry;
  private drawn: TimelineWindow | null = null;
  private whole: TimelineWindow | null = null;
  private isDisposed = false;
}
