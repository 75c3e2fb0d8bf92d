/** Figures to explore below the report that a cell has in its notebook. */

import type { JupyterFrontEndPlugin } from '@jupyterlab/application';
import { IRenderMimeRegistry } from '@jupyterlab/rendermime';
import { BokehLoader } from '../bokeh';
import { ReportOutput } from '../output';
import { IWarpbook } from '../tokens';

const MIME = 'application/vnd.warpbook.report+json';
/** Before HTML, which stands beside it and is shown by it. */
const RANK = 40;

export const outputPlugin: JupyterFrontEndPlugin<void> = {
  id: 'warpbook:output',
  description: 'Figures to explore below the report of a cell.',
  autoStart: true,
  requires: [IWarpbook, IRenderMimeRegistry],
  activate: (_app, { stream }: IWarpbook, registry: IRenderMimeRegistry) => {
    const bokeh = new BokehLoader(stream.connection);
    registry.addFactory(
      {
        // what it shows of a notebook that is not trusted is what HTML shows
        safe: true,
        mimeTypes: [MIME],
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
