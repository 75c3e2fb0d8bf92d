/** The tiles of the launcher: the dashboard, three ways in, the tour where it is at hand. */

import type {
  JupyterFrontEnd,
  JupyterFrontEndPlugin
} from '@jupyterlab/application';
import { ICommandPalette } from '@jupyterlab/apputils';
import { PageConfig } from '@jupyterlab/coreutils';
import { ILauncher } from '@jupyterlab/launcher';
import { ITranslator } from '@jupyterlab/translation';
import { gpuIcon } from '../core/icon';
import {
  CATEGORY,
  OPEN_DASHBOARD,
  OPEN_LABS,
  OPEN_TOUR,
  OPEN_TRACE,
  WHY_SLOW
} from './tokens';
import { setTranslator, trans } from '../core/translation';

/** Where `warpbook up` puts it. */
const TOUR = 'warpbook-tour.ipynb';

export const launcherPlugin: JupyterFrontEndPlugin<void> = {
  id: 'warpbook:launcher',
  description: 'GPU tiles in the launcher.',
  autoStart: true,
  optional: [ILauncher, ICommandPalette, ITranslator],
  activate: (
    app: JupyterFrontEnd,
    launcher: ILauncher | null,
    palette: ICommandPalette | null,
    translator: ITranslator | null
  ) => {
    setTranslator(translator);
    [WHY_SLOW, OPEN_TRACE, OPEN_LABS, OPEN_DASHBOARD].forEach((command, rank) =>
      launcher?.add({ command, category: CATEGORY, rank })
    );
    // said by `warpbook up`, which puts the tour there
    if (PageConfig.getOption('warpbookOpenDashboard') !== 'true') {
      return;
    }
    app.commands.addCommand(OPEN_TOUR, {
      label: trans.__('GPU Tour'),
      caption: trans.__('A notebook that shows what warpbook does'),
      icon: gpuIcon,
      execute: () => app.commands.execute('docmanager:open', { path: TOUR })
    });
    palette?.addItem({ command: OPEN_TOUR, category: CATEGORY });
    launcher?.add({ command: OPEN_TOUR, category: CATEGORY, rank: 4 });
  }
};
