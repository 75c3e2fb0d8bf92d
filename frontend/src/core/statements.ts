/**
 * What the server has said about devices and cells: judgements that hold for a
 * moment (verdicts, health, holders, outlook), and what is kept (receipts,
 * reports, events, post-mortems). Rows of values are in `store.ts`.
 *
 * A judgement that is too old, or whose device is not read, is not given.
 */

import type { Listener } from './connection';
import type {
  CellReport,
  Condition,
  Device,
  DeviceHolders,
  Event,
  Health,
  Holders,
  Keeping,
  MemoryOutlook,
  Outlook,
  PostMortem,
  Receipt,
  ServerMessage,
  Verdict,
  Verdicts
} from '../shapes/protocol';
import type { Store } from './store';

/** Verdicts and health come once a second. */
const JUDGED_MS = 5_000;
/** Holders and outlooks come every few seconds. */
const SURVEYED_MS = 20_000;
const KEPT = 100;

/** The newest message of one kind, and when it came by the client's clock. */
interface LatestMessage<M> {
  readonly message: M;
  readonly atMs: number;
}

export class Statements implements Listener {
  /** By the id that the kernel chose, the oldest first. */
  readonly reports = new Map<string, CellReport>();
  /** By the id of the run, the oldest first. */
  readonly receipts = new Map<string, Receipt>();
  /** How the server keeps the past; null before it said so. */
  keeping: Keeping | null = null;
  private readonly eventsById = new Map<string, Event>();
  private readonly deaths = new Map<string, PostMortem>();
  private verdicts: LatestMessage<Verdicts> | null = null;
  private healths: LatestMessage<Health> | null = null;
  private holdings: LatestMessage<Holders> | null = null;
  private outlooks: LatestMessage<Outlook> | null = null;
  private readonly listeners = new Set<() => void>();

  constructor(
    private readonly store: Store,
    private readonly clientNow: () => number = Date.now
  ) {}

  /** Be told of everything but verdicts and health, which come each second. */
  onChange(listener: () => void): () => void {
    this.listeners.add(listener);
    return () => void this.listeners.delete(listener);
  }

  /** What holds a GPU back now; null if nobody knows. */
  verdict(device: Device): Verdict | null {
    return (
      this.present(device, this.verdicts, JUDGED_MS)?.verdicts[device.id] ??
      null
    );
  }

  /** What slowed a GPU over the last minute, worst first; empty if nothing. */
  health(device: Device): readonly Condition[] {
    return (
      this.present(device, this.healths, JUDGED_MS)?.conditions[device.id] ?? []
    );
  }

  /** Who holds a GPU's memory now; null if nobody knows. */
  holders(device: Device): DeviceHolders | null {
    return (
      this.present(device, this.holdings, SURVEYED_MS)?.devices[device.id] ??
      null
    );
  }

  /** Where a GPU's memory is heading; null if nobody knows. */
  outlook(device: Device): MemoryOutlook | null {
    return (
      this.present(device, this.outlooks, SURVEYED_MS)?.devices[device.id] ??
      null
    );
  }

  /** What a GPU told by itself, the newest first; of all GPUs without a device. */
  events(device?: Device): readonly Event[] {
    return [...this.eventsById.values()]
      .filter(event => device === undefined || event.device === device.id)
      .sort((one, other) => other.time_ms - one.time_ms);
  }

  /** Cells that ran out of GPU memory, the newest first. */
  postMortems(): readonly PostMortem[] {
    return [...this.deaths.values()].sort(
      (one, other) => other.time_ms - one.time_ms
    );
  }

  message(message: ServerMessage): void {
    const atMs = this.clientNow();
    switch (message.type) {
      case 'verdicts':
        this.verdicts = { message, atMs };
        return;
      case 'health':
        this.healths = { message, atMs };
        return;
      case 'holders':
        this.holdings = { message, atMs };
        break;
      case 'outlook':
        this.outlooks = { message, atMs };
        break;
      case 'keeping':
        this.keeping = message;
        break;
      case 'cell_report':
        keep(this.reports, message.id, message);
        break;
      case 'receipt':
        keep(this.receipts, message.cell.id, message);
        break;
      // the server tells what it keeps again after each hello
      case 'event':
        keep(
          this.eventsById,
          `${message.device} ${message.time_ms} ${message.kind} ${message.code}`,
          message
        );
        break;
      case 'post_mortem':
        keep(this.deaths, `${message.kernel_id} ${message.time_ms}`, message);
        break;
      default:
        return;
    }
    this.listeners.forEach(listener => listener());
  }

  private present<M>(
    device: Device,
    heard: LatestMessage<M> | null,
    longestMs: number
  ): M | null {
    return heard !== null &&
      this.store.latest(device).state === 'ok' &&
      this.clientNow() - heard.atMs <= longestMs
      ? heard.message
      : null;
  }
}

/** Add to a map that forgets its oldest. */
function keep<V>(map: Map<string, V>, id: string, value: V): void {
  map.set(id, value);
  for (const oldest of map.keys()) {
    if (map.size <= KEPT) {
      break;
    }
    map.delete(oldest);
  }
}
