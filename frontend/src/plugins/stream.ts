/** Connects the page to the server's stream. */

import type {
  JupyterFrontEnd,
  JupyterFrontEndPlugin
} from '@jupyterlab/application';
import { URLExt } from '@jupyterlab/coreutils';
import { ServerConnection } from '@jupyterlab/services';
import { ISettingRegistry } from '@jupyterlab/settingregistry';
import { ITranslator } from '@jupyterlab/translation';
import { ActiveAlerts } from '../server/alerts';
import type { Endpoint } from '../core/connection';
import { Settings } from '../core/settings';
import { sharedStream } from '../core/page_stream';
import { IWarpbook } from './tokens';
import { setTranslator } from '../core/translation';

/** The schema in schema/plugin.json belongs to the plugin of this name. */
const ID = 'warpbook:plugin';

/** The server of this JupyterLab, by its own rules for URLs and tokens. */
function endpoint(settings: ServerConnection.ISettings): Endpoint {
  return {
    socket: () => {
      let url = URLExt.join(settings.wsUrl, 'warpbook/api/v1/stream');
      if (settings.appendToken && settings.token) {
        url += `?token=${encodeURIComponent(settings.token)}`;
      }
      return new settings.WebSocket(url);
    },
    get: (path, signal) =>
      ServerConnection.makeRequest(
        `${URLExt.join(settings.baseUrl, 'warpbook')}/${path}`,
        signal ? { signal } : {},
        settings
      )
  };
}

export const streamPlugin: JupyterFrontEndPlugin<IWarpbook> = {
  id: ID,
  description: 'Connects the page to the stream of GPU telemetry.',
  autoStart: true,
  optional: [ISettingRegistry, ITranslator],
  provides: IWarpbook,
  activate: (
    app: JupyterFrontEnd,
    registry: ISettingRegistry | null,
    translator: ITranslator | null
  ) => {
    setTranslator(translator);
    const settings = new Settings();
    const ready =
      registry === null
        ? Promise.resolve()
        : settings.load(registry, ID).catch((error: unknown) => {
            console.warn('warpbook: the settings could not be loaded', error);
          });
    const stream = sharedStream(() =>
      endpoint(app.serviceManager.serverSettings)
    );
    // at once: the alerts come only after the hello and when one changes
    const alerts = new ActiveAlerts();
    stream.connection.listen(alerts);
    return { stream, alerts, settings, ready };
  }
};
