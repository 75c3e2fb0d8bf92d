/** Tells of alerts and of the end of long cells, where a person sees it. */

import type {
  JupyterFrontEnd,
  JupyterFrontEndPlugin
} from '@jupyterlab/application';
import { ICommandPalette, Notification } from '@jupyterlab/apputils';
import { INotebookTracker } from '@jupyterlab/notebook';
import { AlertNews, topicOf } from '../server/alerts';
import type { Band, Bands } from '../notebook/bands';
import { notebookName } from '../notebook/bands';
import { duration } from '../core/format';
import { LongCells } from '../notebook/longcells';
import { Kernels } from '../panel/kernels';
import type { Alert, Alerts } from '../shapes/protocol';
import type { Settings } from '../core/settings';
import {
  CATEGORY,
  DASHBOARD_ID,
  IBands,
  IWarpbook,
  NOTIFY_LONG_CELLS,
  OPEN_DASHBOARD
} from './tokens';
import { trans } from '../core/translation';

/** How long a toast stays; a fault stays until it is closed. */
const WARNING_MS = 15_000;
const NEWS_MS = 5_000;

const TYPES: Record<Alert['severity'], Notification.TypeOptions> = {
  fault: 'error',
  warning: 'warning',
  normal: 'info'
};

/** JupyterLab's notifications of the alerts, one for each thing they are about. */
class AlertNotices {
  /** JupyterLab's id of the notification, by topic. */
  private readonly ids = new Map<string, string>();
  private readonly news = new AlertNews(window.sessionStorage);

  constructor(
    private readonly settings: Settings,
    private readonly actions: (alert: Alert) => Notification.IAction[]
  ) {}

  take(message: Alerts): void {
    const { begun, back, over } = this.news.take(message);
    begun
      .filter(alert => this.isWanted(alert))
      .forEach(alert => this.show(alert));
    back.forEach(alert => this.update(alert, TYPES[alert.severity], ''));
    over.forEach(alert =>
      this.update(alert, 'success', `${trans.__('Over:')} `)
    );
  }

  private isWanted({ severity }: Alert): boolean {
    const { notify } = this.settings;
    return notify === 'all' || (notify === 'faults' && severity === 'fault');
  }

  private show(alert: Alert): void {
    this.dismiss(alert);
    const id = Notification.emit(words(alert), TYPES[alert.severity], {
      autoClose: alert.severity === 'fault' ? false : WARNING_MS,
      actions: this.actions(alert)
    });
    this.ids.set(topicOf(alert), id);
  }

  private dismiss(alert: Alert): void {
    const before = this.ids.get(topicOf(alert));
    if (before !== undefined) {
      Notification.dismiss(before);
    }
  }

  /** Change what still stands there; what the person closed stays closed. */
  private update(
    alert: Alert,
    type: Notification.TypeOptions,
    prefix: string
  ): void {
    const id = this.ids.get(topicOf(alert));
    if (id !== undefined && Notification.manager.has(id)) {
      Notification.update({
        id,
        type,
        message: `${prefix}${words(alert)}`,
        autoClose: NEWS_MS,
        actions: prefix ? [] : this.actions(alert)
      });
    }
  }
}

/** Whether it is on the page, and not behind another tab. */
function isDashboardSeen(): boolean {
  const dashboard = document.getElementById(DASHBOARD_ID);
  return dashboard !== null && dashboard.offsetParent !== null;
}

function words({ title, text }: Alert): string {
  return text ? `${title}. ${text}` : title;
}

/** Tell the end of a long cell: outside the page where nobody looks at it. */
function tellEnd(band: Band, elapsedMs: number): void {
  const failed = band.status === 'error';
  const count = band.executionCount === null ? '' : ` [${band.executionCount}]`;
  const name = `${notebookName(band.notebook)}${count}`;
  const title = failed
    ? trans.__('%1 failed', name)
    : trans.__('%1 is done', name);
  const body = trans.__('After %1: %2', duration(elapsedMs), band.title);
  const away = document.hidden || !document.hasFocus();
  if (!away || !tellOutside(title, body)) {
    Notification.emit(`${title}. ${body}`, failed ? 'error' : 'success', {
      autoClose: away ? false : NEWS_MS
    });
  }
}

/** Show the browser's own notification, if the person ever allowed it. */
function tellOutside(title: string, body: string): boolean {
  if (browserSays() !== 'granted') {
    return false;
  }
  try {
    const shown = new window.Notification(title, { body });
    shown.onclick = () => {
      window.focus();
      shown.close();
    };
    return true;
  } catch {
    // some browsers have them in service workers only
    return false;
  }
}

function browserSays(): NotificationPermission | 'missing' {
  return 'Notification' in window ? window.Notification.permission : 'missing';
}

/** Ask the browser, which it allows only at a person's click. */
async function allowOutside(leastSeconds: number): Promise<void> {
  if (browserSays() === 'default') {
    await window.Notification.requestPermission();
  }
  if (browserSays() === 'granted') {
    Notification.success(
      leastSeconds > 0
        ? trans.__(
            'You will be told when a cell ends that ran %1 s or longer, while you ' +
              'look elsewhere.',
            leastSeconds
          )
        : trans.__(
            'The browser allows it, but notify_long_cell_s is 0 in the settings of Warpbook: no cell counts as long.'
          ),
      { autoClose: NEWS_MS }
    );
  } else {
    Notification.warning(
      browserSays() === 'missing'
        ? trans.__(
            'This browser, or a page without https, has no notifications.'
          )
        : trans.__(
            'The browser does not allow notifications here; its settings for this ' +
              'site can change that.'
          ),
      { autoClose: WARNING_MS }
    );
  }
}

export const alertsPlugin: JupyterFrontEndPlugin<void> = {
  id: 'warpbook:alerts',
  description: 'Notifications of alerts and of the end of long cells.',
  autoStart: true,
  requires: [IWarpbook],
  optional: [IBands, ICommandPalette, INotebookTracker],
  activate: async (
    app: JupyterFrontEnd,
    { alerts, settings, ready }: IWarpbook,
    bands: Bands | null,
    palette: ICommandPalette | null,
    notebooks: INotebookTracker | null
  ) => {
    const { commands } = app;
    const kernels = new Kernels(app.serviceManager, notebooks, path => {
      void commands.execute('docmanager:open', { path });
    });
    commands.addCommand(NOTIFY_LONG_CELLS, {
      label: trans.__('Notify Me When Long Cells End'),
      caption: trans.__(
        'Have the browser notify you while you look at something else'
      ),
      isToggled: () => browserSays() === 'granted',
      execute: () => allowOutside(settings.longCellSeconds)
    });
    palette?.addItem({ command: NOTIFY_LONG_CELLS, category: CATEGORY });

    await ready;
    const notices = new AlertNotices(settings, ({ rule, kernel_id }) => {
      const open: Notification.IAction = {
        label: trans.__('Open dashboard'),
        callback: () => void commands.execute(OPEN_DASHBOARD)
      };
      const actions = isDashboardSeen() ? [] : [open];
      if (rule !== 'held_idle' || kernel_id === null) {
        return actions;
      }
      const name = kernels.path(kernel_id) ?? trans.__('a kernel that is idle');
      const restart: Notification.IAction = {
        label: trans.__('Restart kernel…'),
        displayType: 'warn',
        callback: () =>
          void kernels.restart({ name, used_bytes: null }, kernel_id)
      };
      return [...actions, restart];
    });
    const tell = () => {
      if (alerts.newest !== null) {
        notices.take(alerts.newest);
      }
    };
    alerts.onChange(tell);
    tell();
    if (bands !== null) {
      new LongCells(bands, () => settings.longCellSeconds, tellEnd);
    }
  }
};
