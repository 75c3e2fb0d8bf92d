/** Outputs in a notebook: what is below a report, and what stays of a Monitor. */

import type { JupyterFrontEndPlugin } from '@jupyterlab/application';
import { Notification } from '@jupyterlab/apputils';
import { IRenderMimeRegistry } from '@jupyterlab/rendermime';
import type { NotebookPanel } from '@jupyterlab/notebook';
import { INotebookTracker } from '@jupyterlab/notebook';
import { BokehLoader } from '../core/bokeh';
import { trans } from '../core/translation';
import {
  CellLine,
  EditedCell,
  PLACE_CELL,
  SHOW_LINE
} from '../notebook/edited_cell';
import { showPictures } from '../notebook/monitor_picture';
import {
  keepKeys,
  REPORT_MIME,
  ReportOutput
} from '../dashboard/reports/output';
import { IWarpbook } from './tokens';

/** Before HTML, which stands beside it and is shown by it. */
const RANK = 40;

export const outputPlugin: JupyterFrontEndPlugin<void> = {
  id: 'warpbook:output',
  description: 'What is below the report of a cell; what stays of a Monitor.',
  autoStart: true,
  requires: [IWarpbook, IRenderMimeRegistry],
  optional: [INotebookTracker],
  activate: (
    app,
    { stream }: IWarpbook,
    registry: IRenderMimeRegistry,
    notebooks: INotebookTracker | null
  ) => {
    window.addEventListener('keydown', keepKeys, true);
    const watch = (panel: NotebookPanel) =>
      panel.disposed.connect(showPictures(panel));
    notebooks?.forEach(watch);
    notebooks?.widgetAdded.connect((_, panel) => watch(panel));
    const refuse = () =>
      Notification.warning(
        trans.__('The cell is in no notebook of this page whose kernel ran it.')
      );
    app.shell.node.addEventListener(PLACE_CELL, event => {
      const cell: unknown = event instanceof CustomEvent ? event.detail : null;
      const isPlaced =
        notebooks !== null &&
        cell instanceof EditedCell &&
        cell.place(notebooks);
      if (!isPlaced) {
        refuse();
      }
    });
    app.shell.node.addEventListener(SHOW_LINE, event => {
      const line: unknown = event instanceof CustomEvent ? event.detail : null;
      const isShown =
        notebooks !== null &&
        line instanceof CellLine &&
        line.show(notebooks, app.shell);
      if (!isShown) {
        refuse();
      }
    });
    const bokeh = new BokehLoader(stream.connection);
    registry.addFactory(
      {
        // what it shows of a notebook that is not trusted is what HTML shows
        safe: true,
        mimeTypes: [REPORT_MIME],
        defaultRank: RANK,
        createRenderer: ({ mimeType }) =>
          new ReportOutput(
            mimeType,
            registry.createRenderer('text/html'),
            stream.statements,
            bokeh
          )
      },
      RANK
    );
  }
};
