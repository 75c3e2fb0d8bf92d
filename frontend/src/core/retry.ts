/** Requests that failed, made again later: less and less often, or when the stream is back. */

import type { Connection } from './connection';
import { isFinal } from './reading';
import { trans } from './translation';

export class Retry {
  private timer = 0;
  /** How many attempts in a row this has made. */
  private attempts = 0;
  private isDisposed = false;
  private readonly stopListening: () => void;

  /**
   * @param connection - the stream: once it is open again, nothing is waited for
   * @param again - makes the request again
   * @param firstMs - from the first failure until then; twice as long after each attempt
   * @param longestMs - it is never longer
   */
  constructor(
    connection: Pick<Connection, 'listen'>,
    private readonly again: () => void,
    private readonly firstMs: number,
    private readonly longestMs: number
  ) {
    this.stopListening = connection.listen({
      status: ({ phase }) => {
        if (phase !== 'open') {
          return;
        }
        // also an attempt that is under way is the last of its row
        this.attempts = 0;
        if (this.timer !== 0) {
          this.cancel();
          this.again();
        }
      }
    });
  }

  /**
   * A request failed; however many do meanwhile, there is one more attempt.
   * @returns whether there is one: not where it would fail again
   */
  failed(error: unknown): boolean {
    if (this.isDisposed || isFinal(error)) {
      return false;
    }
    const waitMs = Math.min(this.longestMs, this.firstMs * 2 ** this.attempts);
    this.timer ||= window.setTimeout(() => {
      this.timer = 0;
      this.attempts += 1;
      this.again();
    }, waitMs);
    return true;
  }

  /** The same; returns why it failed and whether it is made again, for a person. */
  words(error: unknown): string {
    const { message } = error as Error;
    return this.failed(error) ? trans.__('%1 Trying again.', message) : message;
  }

  /** The server answered: the next failure is the first again. */
  succeeded(): void {
    this.attempts = 0;
  }

  /** What failed is not wanted any more, or is asked for already. */
  cancel(): void {
    window.clearTimeout(this.timer);
    this.timer = 0;
  }

  dispose(): void {
    this.isDisposed = true;
    this.cancel();
    this.stopListening();
  }
}

const AT_LEAST_MS = 5_000;
const PERIODS = 3;

/** Three periods of its rate, but no less than a busy server may take. */
export function longestSilenceMs(rateHz: number): number {
  return Math.max(AT_LEAST_MS, (PERIODS * 1000) / rateHz);
}
