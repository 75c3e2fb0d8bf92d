/**
 * What the stream has said so far: descriptions, the newest values, and the last
 * minutes of every metric as columns that a chart can slice.
 *
 * A row belongs to one time; a device or metric without a value there is NaN,
 * which a chart draws as a break. Times are the server's; `offsetMs` leads to ours.
 * What is too old to be called present has no value, whatever the reason.
 */

import type {
  Absence,
  Device,
  Frame,
  Gap,
  Replay,
  ServerMessage,
  State
} from '../shapes/protocol';
import type { Listener, Status } from './connection';
import { longestSilenceMs } from './retry';
import { trans } from './translation';

/** Ten minutes at 10 Hz; the arrays are twice as long, to be moved seldom. */
const KEPT_ROWS = 6_000;
/** A step longer than this is a break even where no gap was announced. */
const BREAK_MS = 2_500;
/** Frames that are later than this, for so long: a clock was set. */
const LATE_MS = 2_500;
const LATE_FOR_MS = 2_000;
const KEPT_GAPS = 100;

/** Where one device stands now. */
export interface Latest {
  readonly state: State;
  readonly why: string;
  readonly values: readonly (number | null)[];
}

export const NOTHING_READ: Latest = {
  state: 'unavailable',
  why: '',
  values: []
};

export class Store implements Listener {
  devices: readonly Device[] = [];
  absences: readonly Absence[] = [];
  replay: Replay | null = null;
  version = '';
  /** What a recording says that the machine was doing, if it says so. */
  label: string | null = null;
  /** How often devices are read. */
  rateHz = 1;
  readonly gaps: Gap[] = [];
  /** The client's clock less the server's, as small as it was seen since a step. */
  offsetMs = 0;

  private readonly listeners = new Set<() => void>();
  private readonly newest = new Map<string, Latest>();
  private readonly rowTimes = new Float64Array(2 * KEPT_ROWS);
  private readonly columns = new Map<string, Float32Array>();
  private byPosition: { id: string; columns: Float32Array[] }[] = [];
  private rows = 0;
  /** Why nothing is read now; empty while the connection is open. */
  private silence = '';
  /** When the newest frame came, by the client's clock. */
  private frameAtMs = -Infinity;
  /** Late frames in a row: when they began, and the smallest offset among them. */
  private late: { sinceMs: number; offsetMs: number } | null = null;

  constructor(private readonly clientNow: () => number = Date.now) {}

  /** Be told when descriptions or a device's state change. */
  onChange(listener: () => void): () => void {
    this.listeners.add(listener);
    return () => void this.listeners.delete(listener);
  }

  /** The server's clock now. */
  now(): number {
    return this.clientNow() - this.offsetMs;
  }

  latest(device: Device): Latest {
    const latest = this.newest.get(device.id) ?? NOTHING_READ;
    return latest.state === 'ok' && this.silence !== ''
      ? { state: 'stale', why: this.silence, values: [] }
      : latest;
  }

  /** The present value of a metric, null where there is none. */
  value(device: Device, metric: string): number | null {
    if (this.clientNow() - this.frameAtMs > longestSilenceMs(this.rateHz)) {
      return null;
    }
    const index = device.metrics.findIndex(({ name }) => name === metric);
    return this.latest(device).values[index] ?? null;
  }

  /** The time of the oldest row; of none, infinitely late. */
  firstMs(): number {
    return this.rows === 0 ? Infinity : (this.rowTimes[0] ?? Infinity);
  }

  /** The rows from the last one before `fromMs` to the last one before `toMs`. */
  range(fromMs: number, toMs: number): [number, number] {
    const first = this.firstAtOrAfter(fromMs);
    return [Math.max(0, first - 1), this.firstAtOrAfter(toMs)];
  }

  times(start: number, end: number): Float64Array {
    return this.rowTimes.subarray(start, end);
  }

  /** A metric's values in these rows; null if the device does not have it. */
  column(
    device: string,
    metric: string,
    start: number,
    end: number
  ): Float32Array | null {
    const column = this.columns.get(key(device, metric));
    return column?.subarray(start, end) ?? null;
  }

  message(message: ServerMessage): void {
    switch (message.type) {
      case 'hello':
        this.offsetMs = this.clientNow() - message.time_ms;
        this.late = null;
        this.rateHz = message.rate_hz;
        this.absences = message.absences;
        this.replay = message.replay;
        this.version = message.version;
        this.describe(message.devices);
        break;
      case 'devices':
        this.absences = message.absences;
        this.describe(message.devices);
        break;
      case 'frame':
        this.append(message);
        return;
      case 'gap':
        this.breakAt(message.from_ms + 1);
        this.gaps.push(message);
        this.gaps.splice(0, this.gaps.length - KEPT_GAPS);
        return;
      default:
        return;
    }
    this.changed();
  }

  /** Without a connection nothing that was read is of now. */
  status({ phase, why }: Status): void {
    const silence =
      phase === 'open' ? '' : why || trans.__('There is no connection.');
    if (silence !== this.silence) {
      this.silence = silence;
      this.changed();
    }
  }

  rewound(): void {
    this.rows = 0;
    this.gaps.length = 0;
  }

  private describe(devices: readonly Device[]): void {
    const wanted = new Set<string>();
    this.byPosition = devices.map(device => ({
      id: device.id,
      columns: device.metrics.map(({ name }) => {
        wanted.add(key(device.id, name));
        return this.ensure(key(device.id, name));
      })
    }));
    for (const name of this.columns.keys()) {
      if (!wanted.has(name)) {
        this.columns.delete(name);
      }
    }
    this.devices = devices;
  }

  private ensure(name: string): Float32Array {
    let column = this.columns.get(name);
    if (column === undefined) {
      column = new Float32Array(2 * KEPT_ROWS).fill(NaN);
      this.columns.set(name, column);
    }
    return column;
  }

  private append(frame: Frame): void {
    this.followClocks(frame.time_ms);
    const last = this.lastTime();
    if (frame.time_ms < last - BREAK_MS) {
      // the server's clock was put back: what is held lies in its future
      this.rewound();
      this.offsetMs = this.clientNow() - frame.time_ms;
    } else if (frame.time_ms <= last) {
      return;
    } else if (frame.time_ms - last > BREAK_MS) {
      this.breakAt(last + 1);
    }
    const row = this.addRow(frame.time_ms);
    this.frameAtMs = this.clientNow();
    let moved = this.label !== frame.label;
    this.label = frame.label;
    for (const reading of frame.readings) {
      const device = this.byPosition[reading.device];
      if (device === undefined) {
        continue;
      }
      const before = this.newest.get(device.id);
      moved ||= before?.state !== reading.state || before.why !== reading.why;
      this.newest.set(device.id, reading);
      device.columns.forEach((column, index) => {
        column[row] = reading.values[index] ?? NaN;
      });
    }
    if (moved) {
      this.changed();
    }
  }

  /**
   * Take the smallest offset, the one of the fastest frame. Only where all frames
   * stay late was a clock set; those of the past, which come first, soon are not.
   */
  private followClocks(timeMs: number): void {
    const now = this.clientNow();
    const offsetMs = now - timeMs;
    if (offsetMs <= this.offsetMs + LATE_MS) {
      this.offsetMs = Math.min(this.offsetMs, offsetMs);
      this.late = null;
      return;
    }
    this.late ??= { sinceMs: now, offsetMs };
    this.late.offsetMs = Math.min(this.late.offsetMs, offsetMs);
    if (now - this.late.sinceMs >= LATE_FOR_MS) {
      this.offsetMs = this.late.offsetMs;
      this.late = null;
    }
  }

  /** Add a row without values, if it would come after all the others. */
  private breakAt(ms: number): void {
    if (this.rows > 0 && ms > this.lastTime()) {
      this.addRow(ms);
    }
  }

  private addRow(ms: number): number {
    if (this.rows === this.rowTimes.length) {
      this.rowTimes.copyWithin(0, KEPT_ROWS);
      this.columns.forEach(column => column.copyWithin(0, KEPT_ROWS));
      this.rows = KEPT_ROWS;
    }
    const row = this.rows;
    this.rowTimes[row] = ms;
    this.columns.forEach(column => (column[row] = NaN));
    this.rows += 1;
    return row;
  }

  private lastTime(): number {
    return this.rows === 0 ? -Infinity : (this.rowTimes[this.rows - 1] ?? 0);
  }

  private firstAtOrAfter(ms: number): number {
    let low = 0;
    let high = this.rows;
    while (low < high) {
      const middle = (low + high) >> 1;
      if ((this.rowTimes[middle] ?? 0) < ms) {
        low = middle + 1;
      } else {
        high = middle;
      }
    }
    return low;
  }

  private changed(): void {
    this.listeners.forEach(listener => listener());
  }
}

function key(device: string, metric: string): string {
  return `${device}\n${metric}`;
}
