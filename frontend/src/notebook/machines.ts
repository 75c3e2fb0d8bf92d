/**
 * Machines on which kernels of open notebooks run, where that is not the server's.
 *
 * A kernel that has loaded warpbook says over a comm where it is. Names come from
 * elsewhere: they are bounded here, and only ever text.
 */

import type { INotebookTracker, NotebookPanel } from '@jupyterlab/notebook';
import type { Kernel, KernelMessage } from '@jupyterlab/services';
import { clip } from '../core/format';
import type { Comm } from '../widget/kernel';

const TARGET = 'warpbook.machine';
const MOST_NAME = 63;
const MOST_MACHINES = 8;
/** What a message may hold, besides telemetry. */
interface Said {
  readonly machine?: { readonly id?: unknown; readonly name?: unknown };
}

export interface RemoteMachine {
  readonly id: string;
  readonly name: string;
  /** The notebook whose kernel runs there. */
  readonly notebook: string;
  readonly comm: Comm;
}

export class Machines {
  /**
   * @param tracker - of the notebooks.
   * @param server - gives the id of the server's machine; empty if it has none.
   */
  constructor(
    tracker: INotebookTracker,
    private readonly server: () => Promise<string>
  ) {
    tracker.forEach(panel => this.follow(panel));
    tracker.widgetAdded.connect((_, panel) => this.follow(panel));
  }

  /** One for each machine: the kernel that was first, as long as it lasts. */
  get elsewhere(): readonly RemoteMachine[] {
    const ofEach = new Map<string, RemoteMachine>();
    for (const machine of this.offers.values()) {
      if (!ofEach.has(machine.id)) {
        ofEach.set(machine.id, machine);
      }
    }
    return [...ofEach.values()].slice(0, MOST_MACHINES);
  }

  /** Be told when a machine comes or goes. */
  onChange(listener: () => void): () => void {
    this.listeners.add(listener);
    return () => void this.listeners.delete(listener);
  }

  private follow(panel: NotebookPanel): void {
    const { sessionContext } = panel;
    const meet = () => {
      this.forget(panel);
      const kernel = sessionContext.session?.kernel ?? null;
      if (kernel?.handleComms === true) {
        this.meet(panel, kernel);
      }
    };
    sessionContext.kernelChanged.connect(meet);
    sessionContext.statusChanged.connect((_, status) => {
      // one that can't be reached for a while is silent, and has not ended
      if (/restarting|dead|terminating/.test(status)) {
        this.forget(panel);
      }
    });
    panel.disposed.connect(() => this.forget(panel));
    meet();
  }

  private meet(panel: NotebookPanel, kernel: Kernel.IKernelConnection): void {
    kernel.registerCommTarget(TARGET, (comm, message) => {
      this.hear(panel, comm).take(message.content.data);
    });
    // it may have said so before this page was there
    void kernel
      .requestCommInfo({ target_name: TARGET })
      .then(({ content }) => {
        const ids = content.status === 'ok' ? Object.keys(content.comms) : [];
        for (const id of ids.filter(each => !kernel.hasComm(each))) {
          const comm = kernel.createComm(TARGET, id);
          this.hear(panel, comm);
          comm.send({ view: 'who' });
        }
      })
      .catch(() => undefined);
  }

  private hear(panel: NotebookPanel, comm: Kernel.IComm): Channel {
    const channel = new Channel(comm, said => {
      void this.offer(panel, comm, channel, said);
    });
    comm.onClose = () => this.drop(comm);
    return channel;
  }

  private async offer(
    panel: NotebookPanel,
    comm: Kernel.IComm,
    channel: Channel,
    { machine }: Said
  ): Promise<void> {
    const id = machine?.id;
    const name = machine?.name;
    if (typeof id !== 'string' || typeof name !== 'string') {
      return;
    }
    const here = await this.server();
    if (here === '' || here === id || comm.isDisposed) {
      return;
    }
    if (this.offers.has(comm)) {
      return; // the answer to another page
    }
    const notebook = panel.context.path;
    this.panels.set(comm, panel);
    this.offers.set(comm, {
      id,
      name: clip(name, MOST_NAME),
      notebook,
      comm: channel
    });
    this.tell();
  }

  private forget(panel: NotebookPanel): void {
    for (const [comm, of] of this.panels) {
      if (of === panel) {
        this.drop(comm);
      }
    }
  }

  private drop(comm: Kernel.IComm): void {
    this.panels.delete(comm);
    if (this.offers.delete(comm)) {
      this.tell();
    }
  }

  private tell(): void {
    this.listeners.forEach(listener => listener());
  }

  private readonly offers = new Map<Kernel.IComm, RemoteMachine>();
  private readonly panels = new Map<Kernel.IComm, NotebookPanel>();
  private readonly listeners = new Set<() => void>();
}

/** A comm of JupyterLab as the feed of a kernel takes it. */
class Channel implements Comm {
  constructor(
    private readonly comm: Kernel.IComm,
    private readonly said: (said: Said) => void
  ) {
    comm.onMsg = (message: KernelMessage.ICommMsgMsg) =>
      this.take(message.content.data);
  }

  take(content: unknown): void {
    const said = (content ?? {}) as Said;
    if (said.machine) {
      this.said(said);
    }
    this.hearers.forEach(hear => hear(content));
  }

  send(content: unknown): void {
    if (!this.comm.isDisposed) {
      this.comm.send(content as Parameters<Kernel.IComm['send']>[0]);
    }
  }

  on(_event: string, hear: (content: unknown) => void): void {
    this.hearers.add(hear);
  }

  off(_event: string, hear: (content: unknown) => void): void {
    this.hearers.delete(hear);
  }

  private readonly hearers = new Set<(content: unknown) => void>();
}
