/** The alerts that hold now, for every view that shows them. */

import type { Listener, Status } from '../core/connection';
import type { Alert, Alerts, ServerMessage } from '../shapes/protocol';

const ORDER: readonly Alert['severity'][] = ['fault', 'warning', 'normal'];

/** What the server said last; nothing while it can't be heard. */
export class ActiveAlerts implements Listener {
  private said: Alerts | null = null;
  private readonly listeners = new Set<() => void>();

  /** Whether the server has told them; an empty list then means that all is well. */
  get known(): boolean {
    return this.said !== null;
  }

  /** The server's last word, null while it can't be heard. */
  get newest(): Alerts | null {
    return this.said;
  }

  /** Those that hold now, worst first and then the newest. */
  list(): readonly Alert[] {
    return (this.said?.alerts ?? [])
      .filter(alert => alert.until_ms === null)
      .sort(
        (a, b) =>
          ORDER.indexOf(a.severity) - ORDER.indexOf(b.severity) ||
          b.since_ms - a.since_ms
      );
  }

  /** Those that ended lately, the newest first. */
  ended(): readonly Alert[] {
    return (this.said?.alerts ?? [])
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
      this.said = message;
      this.changed();
    }
  }

  status(status: Status): void {
    if (status.phase !== 'open' && this.known) {
      this.said = null;
      this.changed();
    }
  }

  private changed(): void {
    this.listeners.forEach(listener => listener());
  }
}

/** Where a tab remembers what it has told: `sessionStorage`, but for tests. */
export type Memory = Pick<Storage, 'getItem' | 'setItem'>;

/** What is to be said of one message; each alert at most once. */
export interface News {
  readonly begun: readonly Alert[];
  /** The same came back soon after it ended: no reason to disturb anybody again. */
  readonly back: readonly Alert[];
  readonly over: readonly Alert[];
}

const MEMORY_KEY = 'warpbook:alerts-told';
const MOST_REMEMBERED = 200;
/** Who was told of something is not told anew while it comes and goes. */
const FLAPPING_MS = 10 * 60_000;

interface AlertNotice {
  readonly topic: string;
  readonly id: string;
  /** When it was last known to hold, by the server's clock. */
  readonly atMs: number;
}

/** Finds out what is new to this tab, also after a reload or a reconnection. */
export class AlertNews {
  private readonly holding = new Map<string, Alert>();
  private readonly shown: Map<string, AlertNotice>;

  constructor(private readonly memory: Memory) {
    this.shown = new Map(recall(memory).map(entry => [entry.topic, entry]));
  }

  /** Compare what the server says now with what was told before. */
  take({ time_ms: nowMs, alerts }: Alerts): News {
    const begun: Alert[] = [];
    const back: Alert[] = [];
    const over: Alert[] = [];
    const active = alerts.filter(({ until_ms }) => until_ms === null);
    for (const alert of active) {
      const topic = topicOf(alert);
      const before = this.shown.get(topic);
      const flaps = before !== undefined && nowMs - before.atMs < FLAPPING_MS;
      if (before?.id !== alert.id) {
        (flaps ? back : begun).push(alert);
      } else if (isWorse(alert, this.holding.get(topic))) {
        begun.push(alert);
      }
      this.shown.delete(topic);
      this.shown.set(topic, { topic, id: alert.id, atMs: nowMs });
    }
    const topics = new Set(active.map(topicOf));
    for (const [topic, alert] of this.holding) {
      if (!topics.has(topic)) {
        over.push(alert);
        // the time of flapping counts from its end
        this.shown.set(topic, { topic, id: alert.id, atMs: nowMs });
      }
    }
    this.holding.clear();
    active.forEach(alert => this.holding.set(topicOf(alert), alert));
    this.remember();
    return { begun, back, over };
  }

  private remember(): void {
    const newest = [...this.shown.values()].slice(-MOST_REMEMBERED);
    try {
      this.memory.setItem(MEMORY_KEY, JSON.stringify(newest));
    } catch {
      // a browser that stores nothing: a reload tells again
    }
  }
}

/** What an alert is about, whenever it began. */
export function topicOf({ rule, device, kernel_id, title }: Alert): string {
  return JSON.stringify([rule, device, kernel_id, title]);
}

function isWorse(alert: Alert, before: Alert | undefined): boolean {
  return (
    before !== undefined &&
    ORDER.indexOf(alert.severity) < ORDER.indexOf(before.severity)
  );
}

function recall(memory: Memory): AlertNotice[] {
  try {
    const entries: unknown = JSON.parse(memory.getItem(MEMORY_KEY) ?? '[]');
    return Array.isArray(entries) ? entries.filter(isNotice) : [];
  } catch {
    return [];
  }
}

function isNotice(value: unknown): value is AlertNotice {
  const { topic, id, atMs } = (value ?? {}) as Partial<AlertNotice>;
  return (
    typeof topic === 'string' &&
    typeof id === 'string' &&
    typeof atMs === 'number'
  );
}
