/** Follows the machines on which the kernels of open notebooks run. */

import type {
  JupyterFrontEnd,
  JupyterFrontEndPlugin
} from '@jupyterlab/application';
import { INotebookTracker } from '@jupyterlab/notebook';
import { Machines } from '../notebook/machines';
import type { Capabilities } from '../shapes/protocol';
import { IMachines, IWarpbook } from './tokens';

/** Between asking a server that does not answer; then it has no warpbook. */
const WAITS_MS = [1_000, 5_000, 30_000];

export const machinesPlugin: JupyterFrontEndPlugin<Machines> = {
  id: 'warpbook:machines',
  description: 'Follows the machines on which kernels run.',
  autoStart: true,
  requires: [INotebookTracker, IWarpbook],
  provides: IMachines,
  activate: (
    _app: JupyterFrontEnd,
    tracker: INotebookTracker,
    { stream }: IWarpbook
  ) => {
    const ask = async () => {
      const answer = await stream.connection.read('api/v1/capabilities');
      const { machine } = (await answer.json()) as Partial<Capabilities>;
      return machine?.id ?? '';
    };
    const askAgain = async () => {
      for (const waitMs of WAITS_MS) {
        try {
          return await ask();
        } catch {
          await new Promise(done => window.setTimeout(done, waitMs));
        }
      }
      return '';
    };
    let known: Promise<string> | null = null;
    const machine = async () => {
      const id = await (known ??= askAgain());
      // a server that is slow to start is asked again with the next offer
      known = id === '' ? null : known;
      return id;
    };
    return new Machines(tracker, machine);
  }
};
