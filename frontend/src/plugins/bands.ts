/** Follows the cells of all open notebooks. */

import type {
  JupyterFrontEnd,
  JupyterFrontEndPlugin
} from '@jupyterlab/application';
import { INotebookTracker } from '@jupyterlab/notebook';
import { Bands } from '../bands';
import { IBands } from '../tokens';

export const bandsPlugin: JupyterFrontEndPlugin<Bands> = {
  id: 'warpbook:bands',
  description: 'Follows the executed cells of all open notebooks.',
  autoStart: true,
  requires: [INotebookTracker],
  provides: IBands,
  activate: (_app: JupyterFrontEnd, tracker: INotebookTracker) =>
    new Bands(tracker)
};
