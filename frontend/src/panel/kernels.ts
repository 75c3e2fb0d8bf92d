/** The kernels of this server, as far as a view may touch them. */

import { Dialog, showDialog, showErrorMessage } from '@jupyterlab/apputils';
import type { INotebookTracker } from '@jupyterlab/notebook';
import type { ServiceManager } from '@jupyterlab/services';
import { KernelAPI } from '@jupyterlab/services';
import { clip, text } from '../core/format';
import type { Holder } from '../shapes/protocol';
import { trans } from '../core/translation';

/** What the person is told of the kernel. */
type Held = Pick<Holder, 'name' | 'used_bytes'>;

export class Kernels {
  constructor(
    private readonly services: ServiceManager.IManager,
    private readonly tracker: INotebookTracker | null,
    private readonly openPath: (path: string) => void
  ) {}

  /** The file that a kernel of this server runs for; null if it is not one of them. */
  path(kernelId: string): string | null {
    for (const session of this.services.sessions.running()) {
      if (session.kernel?.id === kernelId) {
        return session.path;
      }
    }
    return null;
  }

  /** Show the notebook of a kernel. */
  open(kernelId: string): void {
    const path = this.path(kernelId);
    if (path !== null) {
      this.openPath(path);
    }
  }

  /** Restart a kernel if the person says so, who is told what is lost. */
  async restart(holder: Held, kernelId: string): Promise<void> {
    const { serverSettings } = this.services;
    try {
      const model = await KernelAPI.getKernelModel(kernelId, serverSettings);
      if (model === undefined) {
        throw new Error(trans.__('It has ended meanwhile.'));
      }
      const answer = await showDialog({
        title: trans.__('Restart the kernel?'),
        body: loss(holder, model.execution_state === 'busy'),
        buttons: [
          Dialog.cancelButton(),
          Dialog.warnButton({ label: trans.__('Restart') })
        ],
        defaultButton: 0
      });
      if (answer.button.accept) {
        await this.restartNow(kernelId, model.name);
      }
    } catch (error) {
      void showErrorMessage(
        trans.__('The kernel of %1 was not restarted', clip(holder.name, 80)),
        error as Error
      );
    }
  }

  private async restartNow(id: string, name: string): Promise<void> {
    // an open notebook's own connection, which puts its widgets in order too
    const panel = this.tracker?.find(
      candidate => candidate.sessionContext.session?.kernel?.id === id
    );
    const own = panel?.sessionContext.session?.kernel;
    if (own) {
      await own.restart();
      return;
    }
    const kernel = this.services.kernels.connectTo({ model: { id, name } });
    try {
      await kernel.restart();
    } finally {
      kernel.dispose();
    }
  }
}

/** Say what a restart frees and what it takes. */
function loss(holder: Held, busy: boolean): string {
  const frees =
    holder.used_bytes === null
      ? trans.__('the GPU memory that it holds')
      : trans.__('%1 of GPU memory', text(holder.used_bytes, 'bytes'));
  const running = busy
    ? trans.__('It is running a cell now, which will be stopped.')
    : '';
  return [
    trans.__('This frees %1, held by %2.', frees, clip(holder.name, 200)),
    running,
    trans.__(
      'All its variables are lost: data, models and whatever was not saved to a ' +
        'file. The notebook itself and its outputs stay.'
    )
  ]
    .filter(Boolean)
    .join(' ');
}
