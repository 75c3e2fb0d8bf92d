/**
 * The page's one WebSocket to the server's stream, shared by every view on it.
 *
 * connecting -> open; open or connecting -> waiting (comes back by itself) or
 * refused (a person has to do something). It knows nothing of Jupyter's frontend:
 * an `Endpoint` says where the server is and how this page may reach it.
 */

import type {
  ActAnswer,
  ClientMessage,
  ServerMessage,
  Subscribe
} from '../shapes/protocol';
import { CloseCode, PROTOCOL_VERSION } from '../shapes/protocol';
import { decode } from './decode';
import { HttpError } from './reading';
import { longestSilenceMs } from './retry';

/** Where warpbook's routes are, and how this page may reach them. */
export interface Endpoint {
  /** Open the stream. */
  socket(): WebSocket;
  /** GET a path below `<base_url>/warpbook/`. */
  get(path: string, signal?: AbortSignal): Promise<Response>;
}

export type Phase = 'connecting' | 'open' | 'waiting' | 'refused';

export interface Status {
  readonly phase: Phase;
  /** What happened and what to do, in words; empty while all is well. */
  readonly why: string;
}

/** What one view wants from the stream; the highest of all views is asked for. */
export interface Demand {
  readonly rateHz: number;
  /** How much of the past it shows. */
  readonly historySeconds: number;
}

export interface Listener {
  message?(message: ServerMessage): void;
  status?(status: Status): void;
  /** The past comes again from an earlier time: forget the frames held. */
  rewound?(): void;
}

const FIRST_DELAY_MS = 500;
const LONGEST_DELAY_MS = 30_000;
/** A page that is hidden for a moment keeps its frames. */
const HIDDEN_GRACE_MS = 5_000;
const WATCH_PERIOD_MS = 1_000;

export class Connection {
  private _status: Status = { phase: 'connecting', why: '' };
  private socket: WebSocket | null = null;
  private readonly listeners = new Set<Listener>();
  private readonly demands = new Map<object, Demand>();
  /** The subscription in force on this socket. */
  private subscription: Subscribe | null = null;
  private historySeconds = 0;
  private newestMs: number | null = null;
  private serverNowMs = 0;
  private greeted = false;
  private failures = 0;
  private surprises = 0;
  private paused = document.hidden;
  private timer = 0;
  private hiding = 0;
  private serverRateHz = 1;
  private isReplay = false;
  /** How long nothing came, in time that this page ran: not while it slept. */
  private silentMs = 0;

  constructor(private readonly endpoint: Endpoint) {
    document.addEventListener('visibilitychange', this.onVisibility);
    window.addEventListener('online', () => this.retry());
    window.setInterval(() => this.watch(), WATCH_PERIOD_MS);
    this.open();
  }

  get status(): Status {
    return this._status;
  }

  /** Hear every message and status from now on; returns how to stop. */
  listen(listener: Listener): () => void {
    this.listeners.add(listener);
    return () => void this.listeners.delete(listener);
  }

  /** Ask for frames under a key of the caller's; null takes the demand back. */
  demand(who: object, demand: Demand | null): void {
    if (demand === null) {
      this.demands.delete(who);
    } else {
      this.demands.set(who, demand);
    }
    this.ask();
  }

  /** Say how it stands with what an assistant asked for; nothing while it is lost. */
  answer(answer: ActAnswer): void {
    this.send(answer);
  }

  /** Try again now, also after a refusal. */
  retry(): void {
    if (this._status.phase === 'waiting' || this._status.phase === 'refused') {
      this.open();
    }
  }

  /** GET a path below `<base_url>/warpbook/`; what is refused is an `HttpError`. */
  async read(path: string, signal?: AbortSignal): Promise<Response> {
    const answer = await this.endpoint.get(path, signal);
    if (!answer.ok) {
      throw new HttpError(answer.status, await explain(answer));
    }
    return answer;
  }

  private open(): void {
    window.clearTimeout(this.timer);
    this.subscription = null;
    this.greeted = false;
    this.set('connecting', this._status.why);
    let socket: WebSocket;
    try {
      socket = this.endpoint.socket();
    } catch (error) {
      this.wait(`The stream can't be opened: ${String(error)}`);
      return;
    }
    this.socket = socket;
    socket.onmessage = event => {
      if (this.socket === socket) {
        this.receive(event.data);
      }
    };
    socket.onclose = event => {
      if (this.socket === socket) {
        this.socket = null;
        void this.closed(event.code);
      }
    };
  }

  private receive(data: unknown): void {
    this.silentMs = 0;
    const message = decode(data);
    if (message === null && !this.greeted) {
      this.refuse(UNREADABLE_HELLO);
      return;
    }
    if (message === null) {
      this.surprises += 1;
      if (this.surprises === 1) {
        console.warn('warpbook: ignored a message of an unknown shape');
      }
      return;
    }
    if (message.type === 'other_protocol') {
      this.refuse(otherProtocol(message.protocol));
      return;
    }
    if (message.type === 'hello') {
      this.greeted = true;
      this.failures = 0;
      this.serverNowMs = message.time_ms;
      this.serverRateHz = message.rate_hz;
      this.isReplay = message.replay !== null;
      this.set('open', '');
    } else if (message.type === 'frame') {
      this.newestMs = message.time_ms;
    } else if (message.type === 'error') {
      console.warn(
        `warpbook: the server refused a message: ${message.message}`
      );
    }
    this.listeners.forEach(listener => listener.message?.(message));
    if (message.type === 'hello') {
      this.ask();
    }
  }

  private async closed(code: number): Promise<void> {
    if (code === CloseCode.PROTOCOL_VERSION) {
      this.refuse(otherProtocol(null));
    } else if (code === CloseCode.GARBAGE) {
      this.refuse(
        'The server could not understand this page. Reload it; if that does ' +
          'not help, page and server are of different versions of warpbook.'
      );
    } else if (code === CloseCode.TOO_MANY_VIEWERS) {
      this.refuse(
        'The server has as many viewers as it allows. Close another tab and ' +
          'retry, or raise its limit of viewers.'
      );
    } else if (this.greeted) {
      this.wait('The connection was lost.');
    } else {
      await this.explainFailure();
    }
  }

  /** A browser hides why a WebSocket was refused; a plain request tells. */
  private async explainFailure(): Promise<void> {
    let status: number;
    try {
      status = (await this.endpoint.get('api/v1/capabilities')).status;
    } catch {
      this.wait('The server does not answer.');
      return;
    }
    if (status === 404) {
      this.refuse(
        'This Jupyter server has no warpbook. Install it where the server ' +
          'runs (pip install warpbook) and restart the server.'
      );
    } else if (status === 401 || status === 403) {
      this.refuse('The server asks for a login. Reload the page and log in.');
    } else if (status === 200) {
      this.wait(
        'The server is there, but its WebSocket could not be opened; a proxy ' +
          'on the way may not pass WebSockets.'
      );
    } else {
      this.wait(`The server refused the stream (HTTP ${status}).`);
    }
  }

  private refuse(why: string): void {
    this.drop();
    this.set('refused', why);
  }

  /** Close the socket; what it still says is nobody's. */
  private drop(): void {
    const socket = this.socket;
    this.socket = null;
    socket?.close();
  }

  /** A socket dies without a word where a laptop slept or a router forgot it. */
  private watch(): void {
    const rateHz = this.subscription?.rate_hz;
    if (this._status.phase !== 'open' || rateHz === undefined) {
      this.silentMs = 0;
      return;
    }
    this.silentMs += document.hidden ? 0 : WATCH_PERIOD_MS;
    const longest = longestSilenceMs(Math.min(rateHz, this.serverRateHz));
    if (this.silentMs > longest) {
      this.drop();
      this.wait(
        `Nothing came from the server for ${Math.round(this.silentMs / 1000)} s.`
      );
    }
  }

  private wait(why: string): void {
    const longest = Math.min(
      LONGEST_DELAY_MS,
      FIRST_DELAY_MS * 2 ** this.failures
    );
    this.failures += 1;
    this.set('waiting', `${why} Trying again.`);
    // jitter: many pages must not come back to a restarted server at once
    const delay = longest * (0.5 + Math.random() / 2);
    this.timer = window.setTimeout(() => this.open(), delay);
  }

  private set(phase: Phase, why: string): void {
    this._status = { phase, why };
    this.listeners.forEach(listener => listener.status?.(this._status));
  }

  /** Tell the server what the views of this page want together. */
  private ask(): void {
    if (this._status.phase !== 'open' || this.socket === null) {
      return;
    }
    const demands = [...this.demands.values()];
    if (demands.length === 0 || this.paused) {
      if (this.subscription !== null) {
        this.subscription = null;
        this.send({ type: 'unsubscribe' });
      }
      return;
    }
    const rateHz = Math.max(...demands.map(demand => demand.rateHz));
    const history = Math.max(...demands.map(demand => demand.historySeconds));
    const further = history > this.historySeconds;
    if (this.subscription?.rate_hz === rateHz && !further) {
      return;
    }
    let since = this.newestMs;
    const isNew = further || since === null;
    if (isNew) {
      this.historySeconds = Math.max(history, this.historySeconds);
      since = (since ?? this.serverNowMs) - this.historySeconds * 1000;
      this.listeners.forEach(listener => listener.rewound?.());
    }
    this.subscription = {
      type: 'subscribe',
      protocol: PROTOCOL_VERSION,
      rate_hz: rateHz,
      since_ms: since,
      // a view that comes back wants its gap told, a new one has a past to fill
      ...(this.isReplay && isNew && { played_before: true })
    };
    this.send(this.subscription);
  }

  private send(message: ClientMessage): void {
    if (this.socket?.readyState === WebSocket.OPEN) {
      this.socket.send(JSON.stringify(message));
    }
  }

  private readonly onVisibility = (): void => {
    window.clearTimeout(this.hiding);
    if (!document.hidden) {
      this.paused = false;
      this.retryIfWaiting();
      this.ask();
      return;
    }
    this.hiding = window.setTimeout(() => {
      this.paused = true;
      this.ask();
    }, HIDDEN_GRACE_MS);
  };

  private retryIfWaiting(): void {
    if (this._status.phase === 'waiting') {
      this.open();
    }
  }
}

const UNREADABLE_HELLO =
  "The server's hello can't be read; the page and the server may have different " +
  'versions of warpbook. Reload the page; if that does not help, install the ' +
  'same warpbook for the Jupyter server and for JupyterLab.';

/** The server's own words about an error, or its number. */
async function explain(answer: Response): Promise<string> {
  try {
    const { message } = (await answer.json()) as { message?: unknown };
    if (typeof message === 'string' && message) {
      return message;
    }
  } catch {
    // not JSON: a proxy's page
  }
  return `The server answered HTTP ${answer.status}.`;
}

function otherProtocol(theirs: number | null): string {
  const server = theirs === null ? 'another version' : `version ${theirs}`;
  return (
    `The server speaks ${server} of warpbook's protocol, this page version ` +
    `${PROTOCOL_VERSION}. Reload the page; if that does not help, install the ` +
    'same warpbook for the Jupyter server and for JupyterLab.'
  );
}
