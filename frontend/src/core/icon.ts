/** The sign of warpbook, in tabs, side bar, launcher and settings. */

import { LabIcon } from '@jupyterlab/ui-components';

export const gpuIcon = new LabIcon({
  name: 'warpbook:gpu',
  svgstr:
    '<svg xmlns="http://www.w3.org/2000/svg" width="16" viewBox="0 0 24 24">' +
    '<path class="jp-icon3 jp-icon-selectable" fill="#616161" d="M4 5h16a1 1 0 ' +
    '0 1 1 1v12a1 1 0 0 1-1 1H4a1 1 0 0 1-1-1V6a1 1 0 0 1 1-1zm1 2v10h14V7zm2 ' +
    '8v-3h2v3zm4 0V9h2v6zm4 0v-4h2v4z"/></svg>'
});
