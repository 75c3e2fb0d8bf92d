/** The alerts that hold now, for every view that shows them. */

import type { Listener, Status } from './connection';
import type { Alert, ServerMessage } from './protocol';

const ORDER: readonly Alert['severity'][] = ['fault', 'warning', 'normal'];

/** What the server said last; nothing while it can't be heard. */
export class ActiveAlerts implements Listener {
  private alerts: readonly Alert[] = [];
  private heard = false;
  private readonly listeners = new Set<() => void>();

  /** Whether the server has told them; an empty list then means that all is well. */
  get known(): boolean {
    return this.heard;
  }

  /** Those that hold now, worst first and then the newest. */
  list(): readonly Alert[] {
    return this.alerts
      .filter(alert => alert.until_ms === null)
      .sort(
        (a, b) =>
          ORDER.indexOf(a.severity) - ORDER.indexOf(b.severity) ||
          b.since_ms - a.since_ms
      );
  }

  /** Those that ended lately, the newest first. */
  ended(): readonly Alert[] {
    return this.alerts
      .filter(alert => alert.until_ms !== null)
      .sort((a, b) => (b.until_ms ?? 0) - (a.until_ms ?? 0));
  }

  /** Be told when one begins, ends or changes; returns how to stop. */
  onChange(listener: () => void): () => void {
    this.listeners.add(listener);
    return () => void this.listeners.delete(listener);
  }

  message(message: ServerMessage): void {
    if (message.type === 'alerts') {
      this.alerts = message.alerts;
      this.heard = true;
      this.changed();
    }
  }

  status(status: Status): void {
    if (status.phase !== 'open' && this.heard) {
      this.alerts = [];
      this.heard = false;
      this.changed();
    }
  }

  private changed(): void {
    this.listeners.forEach(listener => listener());
  }
}
