/**
 * Telemetry from the notebook's own kernel, where the page has no warpbook server.
 *
 * The widget says every few seconds that it is there, and the kernel sends what a
 * server's stream would say, over the widget's comm.
 */

import type { Demand, Listener, Status } from '../core/connection';
import { decode } from '../core/decode';
import { PROTOCOL_VERSION } from '../shapes/protocol';
import { longestSilenceMs } from '../core/retry';

/** The part of anywidget's model through which page and kernel speak. */
export interface Comm {
  send(content: unknown): void;
  on(event: string, callback: (content: unknown) => void): void;
  off(event: string, callback: (content: unknown) => void): void;
}

const PERIOD_MS = 1_000;
/** The kernel stops five times as long after the last view was heard. */
const SAY_HERE_EVERY = 3;

const ASKING: Status = {
  phase: 'connecting',
  why:
    'Asking this notebook’s kernel for figures. It answers when the cell that ' +
    'runs is done; without an answer, run the cell above again.'
};
const SILENT: Status = {
  phase: 'waiting',
  why:
    'Nothing comes from the kernel: a cell holds its GIL, or it was restarted ' +
    'or has ended. After a restart, run the cell above again.'
};

export class KernelConnection {
  private _status = ASKING;
  private readonly listeners = new Set<Listener>();
  private readonly views = new Set<object>();
  private greeted = false;
  private timer = 0;
  private ticks = 0;
  private silentMs = 0;
  private longestMs = 0;

  constructor(private readonly comm: Comm) {}

  get status(): Status {
    return this._status;
  }

  /** Hear every message and status from now on; returns how to stop. */
  listen(listener: Listener): () => void {
    this.listeners.add(listener);
    return () => void this.listeners.delete(listener);
  }

  /** The kernel has one rate and no history, so only whether anybody looks counts. */
  demand(who: object, demand: Demand | null): void {
    const idle = this.views.size === 0;
    if (demand !== null) {
      this.views.add(who);
    } else {
      this.views.delete(who);
    }
    if (idle && this.views.size > 0) {
      this.comm.on('msg:custom', this.receive);
      document.addEventListener('visibilitychange', this.onVisibility);
      this.timer = window.setInterval(() => this.tick(), PERIOD_MS);
      this.sayHere();
    } else if (!idle && this.views.size === 0) {
      this.comm.off('msg:custom', this.receive);
      document.removeEventListener('visibilitychange', this.onVisibility);
      window.clearInterval(this.timer);
    }
  }

  private readonly onVisibility = (): void => {
    this.silentMs = 0;
    this.sayHere();
  };

  private sayHere(): void {
    if (document.hidden) {
      return;
    }
    try {
      this.comm.send({ view: 'here', greeted: this.greeted });
    } catch {
      // a comm whose kernel has gone; the silence is told
    }
  }

  private tick(): void {
    this.ticks += 1;
    if (this.ticks % SAY_HERE_EVERY === 0) {
      this.sayHere();
    }
    this.silentMs += document.hidden ? 0 : PERIOD_MS;
    if (this._status.phase === 'open' && this.silentMs > this.longestMs) {
      this.set(SILENT);
    }
  }

  private readonly receive = (content: unknown): void => {
    const { telemetry } = (content ?? {}) as { telemetry?: unknown };
    const message = decode(telemetry);
    if (message === null) {
      return;
    }
    if (message.type === 'other_protocol') {
      this.set({ phase: 'refused', why: otherProtocol(message.protocol) });
      return;
    }
    if (message.type === 'hello') {
      this.greeted = true;
      this.longestMs = longestSilenceMs(message.rate_hz);
    }
    if (!this.greeted) {
      return;
    }
    this.silentMs = 0;
    this.listeners.forEach(listener => listener.message?.(message));
    if (this._status.phase !== 'open') {
      this.set({ phase: 'open', why: '' });
    }
  };

  private set(status: Status): void {
    this._status = status;
    this.listeners.forEach(listener => listener.status?.(status));
  }
}

function otherProtocol(theirs: number): string {
  return (
    `The kernel speaks version ${theirs} of warpbook's protocol, this widget ` +
    `version ${PROTOCOL_VERSION}. Restart the kernel and run the cell again.`
  );
}
