/** Cells that ran before this page was open, as marks: the server keeps them. */

import type { Connection } from '../core/connection';
import { duration, clip } from '../core/format';
import type { KeptRecord } from '../shapes/protocol';
import type { Records } from '../server/records';
import { ANYTHING } from '../server/records';
import { Retry } from '../core/retry';
import type { Mark } from './marks';
import type { Span } from '../core/viewport';

/** As many as a list may have. */
const MOST = 200;
/** A wheel turns in many small steps. */
const SETTLE_MS = 200;
/** A request that failed is made again after so long, and at least so often. */
const RETRY_MS = 10_000;
const LONGEST_RETRY_MS = 320_000;

export class PastCells {
  /** @param arrived - called when there are others to draw */
  constructor(
    private readonly records: Pick<Records, 'find'>,
    connection: Pick<Connection, 'listen'>,
    private readonly arrived: () => void
  ) {
    this.retry = new Retry(
      connection,
      () => this.askAgain(),
      RETRY_MS,
      LONGEST_RETRY_MS
    );
  }

  /** The cells of a span, without those that the page itself has seen. */
  marks(
    span: Span,
    isKnown: (id: string) => boolean,
    color: (notebook: string) => number,
    open: (record: KeptRecord) => void
  ): Mark[] {
    this.want(span);
    return this.cells
      .filter(
        ({ id, started_ms: from, ended_ms: to }) =>
          !isKnown(id) && to !== null && from <= span.toMs && to >= span.fromMs
      )
      .map(cell => ({
        fromMs: cell.started_ms,
        toMs: cell.ended_ms,
        color: color(cell.notebook ?? ''),
        label: describe(cell),
        open: () => open(cell)
      }));
  }

  dispose(): void {
    window.clearTimeout(this.timer);
    this.retry.dispose();
  }

  private want(span: Span): void {
    const { fetched } = this;
    if (
      fetched !== null &&
      span.fromMs >= fetched.fromMs &&
      span.toMs <= fetched.toMs
    ) {
      return;
    }
    this.wanted = span;
    this.timer ||= window.setTimeout(() => {
      this.timer = 0;
      void this.fetch(this.wanted);
    }, SETTLE_MS);
  }

  private async fetch(span: Span): Promise<void> {
    const marginMs = (span.toMs - span.fromMs) / 2;
    const wider = {
      fromMs: Math.max(0, span.fromMs - marginMs),
      toMs: span.toMs + marginMs
    };
    this.fetched = wider;
    this.retry.cancel();
    try {
      const { records } = await this.records.find({
        ...ANYTHING,
        ...wider,
        kinds: ['cell'],
        limit: MOST
      });
      if (this.fetched === wider) {
        this.retry.succeeded();
        this.cells = records;
        this.arrived();
      }
    } catch (error) {
      // the charts are there all the same
      if (this.fetched === wider) {
        this.retry.failed(error);
      }
    }
  }

  /** Call for another drawing, which asks. */
  private askAgain(): void {
    this.fetched = null;
    this.arrived();
  }

  private readonly retry: Retry;
  private cells: readonly KeptRecord[] = [];
  private fetched: Span | null = null;
  private wanted: Span = { fromMs: 0, toMs: 0 };
  private timer = 0;
}

function describe(cell: KeptRecord): string {
  const elapsed = duration(
    (cell.ended_ms ?? cell.started_ms) - cell.started_ms
  );
  const status = cell.status === 'ok' ? '' : `, ${cell.status}`;
  const notebook = cell.notebook ?? '';
  const name = notebook.slice(notebook.lastIndexOf('/') + 1);
  return `${clip(name, 60)}: ${elapsed}${clip(status, 20)}`;
}
