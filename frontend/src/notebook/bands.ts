/**
 * Every executed cell of every open notebook, as a span of time.
 *
 * The frontend hears all of a kernel's messages, so nothing has to be loaded in the
 * kernel. Times are the browser's, because a kernel may run on another machine.
 */

import type { CodeCell } from '@jupyterlab/cells';
import type { INotebookTracker, NotebookPanel } from '@jupyterlab/notebook';
import { KernelMessage } from '@jupyterlab/services';
import { clip, duration } from '../core/format';
import type { Mark } from '../chart/marks';

export type BandStatus = 'running' | 'ok' | 'error' | 'interrupted';

/** One execution of one cell. */
export interface Band {
  /** Of the kernel's message that asked for it: the same on every page. */
  readonly id: string;
  readonly notebook: string;
  /** Null if another client of the same kernel executed it. */
  readonly cellId: string | null;
  readonly executionCount: number | null;
  readonly kernelId: string;
  /** The first line of the cell that says what it does. */
  readonly title: string;
  readonly startMs: number;
  /** Null while it runs. */
  endMs: number | null;
  status: BandStatus;
}

const KEPT_BANDS = 1_000;

export class Bands {
  /** Notebooks in the order in which they were first seen to run a cell. */
  readonly notebooks: string[] = [];

  constructor(tracker: INotebookTracker) {
    tracker.forEach(panel => this.follow(panel));
    tracker.widgetAdded.connect((_, panel) => this.follow(panel));
  }

  /** Be told when a cell starts or ends. */
  onChange(listener: () => void): () => void {
    this.listeners.add(listener);
    return () => void this.listeners.delete(listener);
  }

  /** The bands that touch a span, as marks in a clock that is `offsetMs` behind. */
  marks(
    fromMs: number,
    toMs: number,
    offsetMs: number,
    open?: (band: Band) => void
  ): Mark[] {
    return this.bands
      .filter(
        band =>
          band.startMs - offsetMs <= toMs &&
          (band.endMs === null || band.endMs - offsetMs >= fromMs)
      )
      .map(band => ({
        fromMs: band.startMs - offsetMs,
        toMs: band.endMs === null ? null : band.endMs - offsetMs,
        color: this.notebooks.indexOf(band.notebook),
        label: describe(band),
        ...(open && { open: () => open(band) })
      }));
  }

  /** The newest executions, the newest first. */
  newest(most: number): readonly Band[] {
    return this.bands.slice(-most).reverse();
  }

  /** Those that have ended, the oldest first. */
  ended(): readonly Band[] {
    return this.bands.filter(({ endMs }) => endMs !== null);
  }

  /** Whether this page has seen an execution. */
  has(id: string): boolean {
    return this.bands.some(band => band.id === id);
  }

  /** The place of a notebook's colour; a new one where it was not seen. */
  colorOf(notebook: string): number {
    if (!this.notebooks.includes(notebook)) {
      this.notebooks.push(notebook);
    }
    return this.notebooks.indexOf(notebook);
  }

  private follow(panel: NotebookPanel): void {
    const running = new Map<string, Band>();
    const { sessionContext } = panel;
    sessionContext.iopubMessage.connect((_, message) => {
      this.hear(panel, running, message);
    });
    sessionContext.statusChanged.connect((_, status) => {
      if (/restarting|dead|terminating|unknown/.test(status)) {
        running.forEach(band => this.end(band, 'interrupted'));
        running.clear();
      }
    });
    panel.disposed.connect(() => {
      running.forEach(band => this.end(band, 'interrupted'));
    });
  }

  private hear(
    panel: NotebookPanel,
    running: Map<string, Band>,
    message: KernelMessage.IMessage
  ): void {
    const parent = message.parent_header;
    if (!('msg_id' in parent)) {
      return;
    }
    const id = parent.msg_id;
    if (KernelMessage.isExecuteInputMsg(message)) {
      running.set(id, this.start(panel, id, message.content));
      return;
    }
    const band = running.get(id);
    if (band === undefined) {
      return;
    }
    if (KernelMessage.isErrorMsg(message)) {
      band.status = errorStatus(message.content.ename);
    } else if (
      KernelMessage.isStatusMsg(message) &&
      message.content.execution_state === 'idle'
    ) {
      running.delete(id);
      this.end(band, band.status === 'running' ? 'ok' : band.status);
    }
  }

  private start(
    panel: NotebookPanel,
    messageId: string,
    input: KernelMessage.IExecuteInputMsg['content']
  ): Band {
    const notebook = panel.context.path;
    const cell = panel.content.widgets.find(widget => {
      const { outputArea } = widget as Partial<Pick<CodeCell, 'outputArea'>>;
      return outputArea?.future?.msg.header.msg_id === messageId;
    });
    const band: Band = {
      id: messageId,
      notebook,
      cellId: cell?.model.id ?? null,
      executionCount: input.execution_count,
      kernelId: panel.sessionContext.session?.kernel?.id ?? '',
      title: titleOf(input.code),
      startMs: Date.now(),
      endMs: null,
      status: 'running'
    };
    if (!this.notebooks.includes(notebook)) {
      this.notebooks.push(notebook);
    }
    this.bands.push(band);
    this.bands.splice(0, this.bands.length - KEPT_BANDS);
    this.changed();
    return band;
  }

  private end(band: Band, status: BandStatus): void {
    band.endMs = Date.now();
    band.status = status;
    this.changed();
  }

  private changed(): void {
    this.listeners.forEach(listener => listener());
  }

  private readonly bands: Band[] = [];
  private readonly listeners = new Set<() => void>();
}

/** How a cell ended that raised this; a person who interrupts made no error. */
function errorStatus(ename: string): BandStatus {
  return ename === 'KeyboardInterrupt' ? 'interrupted' : 'error';
}

/** Comments, magics, imports, and heads of blocks: they don't tell cells apart. */
const PLAIN_LINE =
  /^([#%!]|(import|from)\s|(try|else|finally|except|elif|if|for|while|with|def|class|async)\b.*:$)/;

/** The first line of code that calls something, as in reports, else that says something. */
export function titleOf(code: string): string {
  const lines = code
    .split('\n')
    .map(line => line.trim())
    .filter(line => line !== '');
  const telling = lines.filter(line => !PLAIN_LINE.test(line));
  const called = telling.find(line => line.includes('('));
  return clip(called ?? telling[0] ?? lines[0] ?? '', 200);
}

/** The last part of a notebook's path. */
export function notebookName(path: string): string {
  return clip(path.slice(path.lastIndexOf('/') + 1), 60);
}

/** Name an execution in one line. */
export function describe(band: Band): string {
  const count = band.executionCount === null ? '' : ` [${band.executionCount}]`;
  const elapsed = duration((band.endMs ?? Date.now()) - band.startMs);
  const status = band.status === 'ok' ? '' : `, ${band.status}`;
  const where = band.cellId === null ? ', from another client' : '';
  return `${notebookName(band.notebook)}${count}: ${elapsed}${status}${where}`;
}
