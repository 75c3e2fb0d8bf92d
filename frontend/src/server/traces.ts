/** Trace files that this page has opened, and their reports. */

import type { Connection } from '../core/connection';
import { UnknownForm } from '../core/reading';
import { isCellReport } from '../shapes/stream';
import type { CellReport } from '../shapes/protocol';

const MOST_KNOWN = 16;

export class TraceFiles {
  constructor(private readonly connection: Pick<Connection, 'read'>) {}

  /** The newest report of each file that was read, the oldest first. */
  get known(): readonly CellReport[] {
    return [...this.byPath.values()];
  }

  /**
   * Have the server read a file.
   * @param path - as Jupyter's contents have it
   */
  async report(path: string): Promise<CellReport> {
    const query = new URLSearchParams({ path }).toString();
    const answer = await this.connection.read(`api/v1/trace?${query}`);
    const value: unknown = await answer.json();
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

  private readonly byPath = new Map<string, CellReport>();
}
