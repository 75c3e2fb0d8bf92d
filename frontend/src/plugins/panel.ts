/** Puts the GPU panel into the side bar: command, palette, restoring, on and off. */

import type {
  JupyterFrontEnd,
  JupyterFrontEndPlugin
} from '@jupyterlab/application';
import { ILayoutRestorer } from '@jupyterlab/application';
import { ICommandPalette } from '@jupyterlab/apputils';
import { INotebookTracker } from '@jupyterlab/notebook';
import { gpuIcon } from '../core/icon';
import { Kernels } from '../panel/kernels';
import { Panel } from '../panel/panel';
import { CATEGORY, IWarpbook, OPEN_DASHBOARD, OPEN_PANEL } from './tokens';
import { trans } from '../core/translation';

export const panelPlugin: JupyterFrontEndPlugin<void> = {
  id: 'warpbook:panel',
  description: 'The GPU panel in the side bar.',
  autoStart: true,
  requires: [IWarpbook],
  optional: [ICommandPalette, ILayoutRestorer, INotebookTracker],
  activate: async (
    app: JupyterFrontEnd,
    { stream, alerts, settings, ready }: IWarpbook,
    palette: ICommandPalette | null,
    restorer: ILayoutRestorer | null,
    notebooks: INotebookTracker | null
  ) => {
    const kernels = new Kernels(app.serviceManager, notebooks, path => {
      void app.commands.execute('docmanager:open', { path });
    });
    const panel = new Panel(stream, alerts, kernels, () => {
      void app.commands.execute(OPEN_DASHBOARD);
    });
    panel.id = 'warpbook-panel';
    panel.title.icon = gpuIcon;
    panel.title.caption = trans.__('GPUs: now, who holds memory, health');
    panel.node.setAttribute('role', 'region');
    panel.node.setAttribute('aria-label', trans.__('GPU panel'));
    app.commands.addCommand(OPEN_PANEL, {
      label: trans.__('GPU Panel'),
      caption: trans.__('Every GPU now, who holds its memory, and its health'),
      icon: gpuIcon,
      isEnabled: () => settings.panel,
      execute: () => app.shell.activateById(panel.id)
    });
    palette?.addItem({ command: OPEN_PANEL, category: CATEGORY });

    await ready;
    const follow = () => {
      panel.setRate(settings.rateHz);
      if (settings.panel && !panel.isAttached) {
        app.shell.add(panel, 'right', { rank: 900, type: 'GPUs' });
      } else if (!settings.panel) {
        panel.parent = null;
      }
      app.commands.notifyCommandChanged(OPEN_PANEL);
    };
    settings.onChange(follow);
    follow();
    restorer?.add(panel, 'warpbook-panel');
  }
};
