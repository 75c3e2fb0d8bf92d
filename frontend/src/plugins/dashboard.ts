/** Opens the dashboard: command, palette, restoring, at the start. */

import type {
  JupyterFrontEnd,
  JupyterFrontEndPlugin
} from '@jupyterlab/application';
import { ILabShell, ILayoutRestorer } from '@jupyterlab/application';
import {
  ICommandPalette,
  MainAreaWidget,
  WidgetTracker
} from '@jupyterlab/apputils';
import { PageConfig } from '@jupyterlab/coreutils';
import { IStateDB } from '@jupyterlab/statedb';
import type { ReadonlyJSONValue } from '@lumino/coreutils';
import type { Widget } from '@lumino/widgets';
import { rulesServer } from '../server/alert_rules';
import type { Bands } from '../notebook/bands';
import type { Keeper } from '../dashboard/tiles/arrangement';
import { Arrangement } from '../dashboard/tiles/arrangement';
import { Dashboard } from '../dashboard/dashboard';
import { doors } from '../dashboard/doors';
import { gpuIcon } from '../core/icon';
import { PLACEMENT } from '../labs/quiz';
import type { Machines } from '../notebook/machines';
import {
  CATEGORY,
  DASHBOARD_ID,
  IBands,
  IMachines,
  IWarpbook,
  OPEN_DASHBOARD,
  OPEN_LABS,
  OPEN_REPORT,
  OPEN_TRACE,
  WHY_SLOW
} from './tokens';
import { trans } from '../core/translation';

/** How long a first document may take; one named in the URL is sure to come. */
const FIRST_DOCUMENT_MS = 5_000;
const NAMED_DOCUMENT_MS = 60_000;
/** In the workspace's state; what begins as a tracker's name is taken for a widget. */
const ARRANGEMENT = 'warpbook:arrangement';

export const dashboardPlugin: JupyterFrontEndPlugin<void> = {
  id: 'warpbook:dashboard',
  description: 'The GPU dashboard.',
  autoStart: true,
  requires: [IWarpbook],
  optional: [
    IBands,
    ICommandPalette,
    ILayoutRestorer,
    ILabShell,
    IStateDB,
    IMachines
  ],
  activate: (
    app: JupyterFrontEnd,
    { stream, settings, ready }: IWarpbook,
    bands: Bands | null,
    palette: ICommandPalette | null,
    restorer: ILayoutRestorer | null,
    labShell: ILabShell | null,
    state: IStateDB | null,
    machines: Machines | null
  ) => {
    const tracker = new WidgetTracker<MainAreaWidget<Dashboard>>({
      namespace: 'warpbook-dashboard'
    });
    const open = async (beside: boolean) => {
      await ready;
      const present = tracker.currentWidget;
      if (present !== null) {
        app.shell.activateById(present.id);
        return present;
      }
      const arrangement = new Arrangement(state && keeper(state));
      await arrangement.load();
      if (tracker.currentWidget !== null) {
        // asked for twice at once
        return tracker.currentWidget;
      }
      const content = new Dashboard(
        stream,
        bands,
        settings,
        arrangement,
        rulesServer(app.serviceManager.serverSettings),
        ({ id }) => void app.commands.execute(OPEN_REPORT, { id }),
        machines,
        doors({
          whySlow: () => void app.commands.execute(WHY_SLOW),
          openTrace: () => void app.commands.execute(OPEN_TRACE),
          openLabs: () => void app.commands.execute(OPEN_LABS),
          openQuiz: () =>
            void app.commands.execute(OPEN_LABS, { quiz: PLACEMENT })
        })
      );
      let { windowSeconds } = settings;
      const stop = settings.onChange(() => {
        content.setRate(settings.rateHz);
        // another setting that changes leaves the window that a person chose
        if (settings.windowSeconds !== windowSeconds) {
          ({ windowSeconds } = settings);
          content.setWindow(windowSeconds);
        }
      });
      content.disposed.connect(stop);
      const widget = new MainAreaWidget({ content });
      widget.id = DASHBOARD_ID;
      widget.toolbar.hide();
      widget.title.label = trans.__('GPU dashboard');
      widget.title.icon = gpuIcon;
      widget.title.closable = true;
      // only JupyterLab has room for a second document in its main area
      const area = labShell === null ? 'right' : 'main';
      app.shell.add(
        widget,
        area,
        beside ? { mode: 'split-right', activate: false } : {}
      );
      if (!beside) {
        app.shell.activateById(widget.id);
      }
      await tracker.add(widget);
      return widget;
    };

    app.commands.addCommand(OPEN_DASHBOARD, {
      label: trans.__('GPU Dashboard'),
      caption: trans.__(
        'What the GPUs of this server do, beside the cells that ran'
      ),
      icon: gpuIcon,
      execute: args => open(args['beside'] === true)
    });
    palette?.addItem({ command: OPEN_DASHBOARD, category: CATEGORY });
    if (restorer !== null) {
      void restorer.restore(tracker, {
        command: OPEN_DASHBOARD,
        name: () => 'dashboard'
      });
    }
    if (PageConfig.getOption('warpbookOpenDashboard') === 'true') {
      void app.restored.then(async () => {
        const restored = tracker.currentWidget;
        if (restored === null) {
          await firstDocument(labShell);
          await app.commands.execute(OPEN_DASHBOARD, { beside: true });
        } else if (restored.isVisible && labShell !== null) {
          keepInSight(restored, labShell);
        }
      });
    }
  }
};

/** Keeps the arrangement in JupyterLab's workspace. */
function keeper(state: IStateDB): Keeper {
  return {
    load: () => state.fetch(ARRANGEMENT),
    save: kept => state.save(ARRANGEMENT, kept as unknown as ReadonlyJSONValue)
  };
}

/** A notebook named in the URL opens after the layout: the dashboard goes beside it. */
function firstDocument(labShell: ILabShell | null): Promise<void> {
  if (labShell === null || labShell.currentWidget !== null) {
    return Promise.resolve();
  }
  return new Promise(resolve => {
    const go = () => {
      labShell.currentChanged.disconnect(go);
      resolve();
    };
    labShell.currentChanged.connect(go);
    const named = PageConfig.getOption('treePath') !== '';
    window.setTimeout(go, named ? NAMED_DOCUMENT_MS : FIRST_DOCUMENT_MS);
  });
}

/** The next document may open over a dashboard that was restored: it goes aside. */
function keepInSight(dashboard: Widget, labShell: ILabShell): void {
  const next = () => {
    labShell.currentChanged.disconnect(next);
    // the dock panel hides and shows after it has told
    window.setTimeout(() => {
      if (dashboard.isAttached && !dashboard.isVisible) {
        labShell.add(dashboard, 'main', {
          mode: 'split-right',
          activate: false
        });
      }
    });
  };
  if (PageConfig.getOption('treePath') !== '') {
    labShell.currentChanged.connect(next);
  }
}
