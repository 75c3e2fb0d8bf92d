/** Follows the cells of all open notebooks. */

import type {
  JupyterFrontEnd,
  JupyterFrontEndPlugin
} from '@jupyterlab/application';
import { URLExt } from '@jupyterlab/coreutils';
import { INotebookTracker } from '@jupyterlab/notebook';
import { ServerConnection } from '@jupyterlab/services';
import { Bands } from '../notebook/bands';
import { Handover, RefusalError } from '../notebook/handover';
import type { CellBand } from '../shapes/protocol';
import { IBands, IWarpbook } from './tokens';

export const bandsPlugin: JupyterFrontEndPlugin<Bands> = {
  id: 'warpbook:bands',
  description: 'Follows the executed cells of all open notebooks.',
  autoStart: true,
  requires: [INotebookTracker, IWarpbook],
  provides: IBands,
  activate: (
    app: JupyterFrontEnd,
    tracker: INotebookTracker,
    { stream }: IWarpbook
  ) => {
    const bands = new Bands(tracker);
    const { serverSettings } = app.serviceManager;
    new Handover({
      bands,
      connection: stream.connection,
      isKept: () =>
        ['on', 'other_server'].includes(stream.statements.keeping?.state ?? ''),
      offsetMs: () => stream.store.offsetMs,
      post: cells => post(serverSettings, cells)
    });
    return bands;
  }
};

async function post(
  settings: ServerConnection.ISettings,
  cells: readonly CellBand[]
): Promise<void> {
  const answer = await ServerConnection.makeRequest(
    URLExt.join(settings.baseUrl, 'warpbook/api/v1/cells'),
    { method: 'POST', body: JSON.stringify(cells) },
    settings
  );
  if (answer.status === 400) {
    throw new RefusalError('The server can not read the cells.');
  }
  if (!answer.ok) {
    throw new ServerConnection.ResponseError(answer);
  }
}
