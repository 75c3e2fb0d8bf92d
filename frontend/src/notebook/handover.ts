/** Hands the cells that this page saw to the server, which keeps them. */

import type { Band, Bands } from './bands';
import type { Connection } from '../core/connection';
import { clip } from '../core/format';
import type { CellBand } from '../shapes/protocol';
import { Retry } from '../core/retry';

/** Cells may end by the hundred. */
const SETTLE_MS = 1_000;
/** As many as the server takes at once. */
const MOST = 200;
/** A disk that is full may have room after so long; it is tried at least so often. */
const RETRY_MS = 30_000;
const LONGEST_RETRY_MS = 480_000;

export interface HandoverOptions {
  readonly bands: Bands;
  readonly connection: Pick<Connection, 'listen'>;
  /** Whether the server keeps any. */
  readonly isKept: () => boolean;
  /** The client's clock less the server's. */
  readonly offsetMs: () => number;
  /** Send them; it fails where the server does not take them, with `RefusalError` for ever. */
  readonly post: (cells: readonly CellBand[]) => Promise<void>;
}

/** The server says that what it was sent is wrong; it will say so again. */
export class RefusalError extends Error {}

export class Handover {
  private readonly sent = new Set<string>();
  private timer = 0;
  private readonly retry: Retry;

  constructor(private readonly options: HandoverOptions) {
    this.retry = new Retry(
      options.connection,
      () => this.soon(),
      RETRY_MS,
      LONGEST_RETRY_MS
    );
    options.bands.onChange(() => this.soon());
  }

  private soon(): void {
    this.timer ||= window.setTimeout(() => {
      this.timer = 0;
      void this.send();
    }, SETTLE_MS);
  }

  private async send(): Promise<void> {
    const { bands, isKept, offsetMs } = this.options;
    if (!isKept()) {
      return;
    }
    // one offset for both ends: no cell ends before it begins
    const offset = offsetMs();
    const cells = bands
      .ended()
      .filter(({ id }) => !this.sent.has(id))
      .slice(0, MOST);
    if (cells.length === 0) {
      return;
    }
    cells.forEach(({ id }) => this.sent.add(id));
    const isDone = await this.post(cells.map(band => cellBand(band, offset)));
    if (isDone && cells.length === MOST) {
      // there may be more
      this.soon();
    }
  }

  /** Returns whether the server took or refused each; else all that is left waits. */
  private async post(cells: readonly CellBand[]): Promise<boolean> {
    try {
      await this.options.post(cells);
      this.retry.succeeded();
      return true;
    } catch (error) {
      if (!(error instanceof RefusalError)) {
        // asked again with the next cell, or after a while
        cells.forEach(({ id }) => this.sent.delete(id));
        this.retry.failed(error);
        return false;
      }
    }
    let isDone = true;
    if (cells.length > 1) {
      // one of them is wrong, and is to cost no other
      for (const cell of cells) {
        isDone = (await this.post([cell])) && isDone;
      }
    }
    return isDone;
  }
}

/** A band as the server takes it, in the server's clock. */
export function cellBand(band: Band, offsetMs: number): CellBand {
  const startedMs = Math.max(band.startMs - offsetMs, 0);
  return {
    id: band.id,
    kernel_id: band.kernelId,
    notebook: clip(band.notebook, 1000),
    cell_id: band.cellId === null ? null : clip(band.cellId, 100),
    execution_count: band.executionCount,
    title: clip(band.title, 200),
    started_ms: startedMs,
    ended_ms:
      band.endMs === null ? null : Math.max(band.endMs - offsetMs, startedMs),
    status: band.status
  };
}
