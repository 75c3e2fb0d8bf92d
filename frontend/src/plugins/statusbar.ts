/** Puts the GPU item into the status bar, where the application has one. */

import type {
  JupyterFrontEnd,
  JupyterFrontEndPlugin
} from '@jupyterlab/application';
import { IStatusBar } from '@jupyterlab/statusbar';
import { StatusItem } from '../panel/statusbar';
import { IWarpbook, OPEN_DASHBOARD } from './tokens';

export const statusBarPlugin: JupyterFrontEndPlugin<void> = {
  id: 'warpbook:statusbar',
  description: 'GPU activity, memory and power in the status bar.',
  autoStart: true,
  requires: [IWarpbook],
  optional: [IStatusBar],
  activate: async (
    app: JupyterFrontEnd,
    { stream, settings, ready }: IWarpbook,
    statusBar: IStatusBar | null
  ) => {
    // Notebook 7 has none
    if (statusBar === null) {
      return;
    }
    await ready;
    const item = new StatusItem(stream, () => {
      void app.commands.execute(OPEN_DASHBOARD);
    });
    const follow = () => {
      item.setHidden(!settings.statusBar);
      item.watch(settings.statusBar ? settings.rateHz : null);
    };
    settings.onChange(follow);
    follow();
    statusBar.registerStatusItem('warpbook:status', {
      item,
      align: 'left',
      rank: 90
    });
  }
};
