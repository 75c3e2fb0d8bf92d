/** Trace files that this page has opened, and their reports. */

import type { Connection } from '../core/connection';
import { UnknownForm } from '../core/reading';
import { isCellReport, isTraceProgress } from '../shapes/stream';
import type { CellReport, TraceProgress } from '../shapes/protocol';

const MOST_KNOWN = 16;
/** Between two questions how far a report is. */
const ASK_MS = 500;

/** Somebody who waits for a report. */
export interface Waiting {
  /** Ends the work when nobody waits any more. */
  readonly signal: AbortSignal;
  say(progress: TraceProgress): void;
}

export class TraceFiles {
  constructor(private readonly connection: Pick<Connection, 'read'>) {}

  /** The newest report of each file that was read, the oldest first. */
  get known(): readonly CellReport[] {
    return [...this.byPath.values()];
  }

  /**
   * Have the server read a file.
   * @param path - as Jupyter's contents have it
   * @param waiting - hears how far it is
   */
  async report(path: string, waiting?: Waiting): Promise<CellReport> {
    const query = new URLSearchParams({ path }).toString();
    const timer =
      waiting === undefined
        ? undefined
        : setInterval(() => void this.tell(query, waiting), ASK_MS);
    let value: unknown;
    try {
      const answer = await this.connection.read(
        `api/v1/trace?${query}`,
        waiting?.signal
      );
      value = await answer.json();
    } finally {
      clearInterval(timer);
    }
    if (!isCellReport(value)) {
      throw new UnknownForm();
    }
    this.byPath.delete(path);
    this.byPath.set(path, value);
    for (const oldest of this.byPath.keys()) {
      if (this.byPath.size <= MOST_KNOWN) {
        break;
      }
      this.byPath.delete(oldest);
    }
    return value;
  }

  private async tell(query: string, waiting: Waiting): Promise<void> {
    try {
      const answer = await this.connection.read(
        `api/v1/trace/progress?${query}`,
        waiting.signal
      );
      const value: unknown = await answer.json();
      if (isTraceProgress(value) && value.stage !== '') {
        waiting.say(value);
      }
    } catch {
      // the report itself tells what is wrong
    }
  }

  private readonly byPath = new Map<string, CellReport>();
}
