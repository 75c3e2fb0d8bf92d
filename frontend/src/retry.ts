/** Requests that failed, made again later: less and less often, or when the stream is back. */

import type { Connection } from './connection';

export class Retry {
  private timer = 0;
  /** How many attempts in a row failed. */
  private failures = 0;
  private isDisposed = false;
  private readonly stopListening: () => void;

  /**
   * @param connection - the stream: once it is open again, nothing is waited for
   * @param again - makes the request again
   * @param firstMs - from the first failure until then; twice as long after each more
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
        if (phase === 'open' && this.timer !== 0) {
          this.cancel();
          this.failures = 0;
          this.again();
        }
      }
    });
  }

  /** A request failed; however many do meanwhile, there is one more attempt. */
  failed(): void {
    if (this.timer !== 0 || this.isDisposed) {
      return;
    }
    const waitMs = Math.min(this.longestMs, this.firstMs * 2 ** this.failures);
    this.failures += 1;
    this.timer = window.setTimeout(() => {
      this.timer = 0;
      this.again();
    }, waitMs);
  }

  /** The server answered: the next failure is the first again. */
  succeeded(): void {
    this.failures = 0;
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
