/** The alert rules of the Jupyter server: asked for, and changed one at a time. */

import { URLExt } from '@jupyterlab/coreutils';
import { ServerConnection } from '@jupyterlab/services';
import type { AlertRuleChange, AlertRules } from '../shapes/protocol';
import { isAlertRules } from '../shapes/alert_rules';

/** What the form needs of the server. */
export interface RulesServer {
  read(): Promise<AlertRules>;
  /** Write one rule; what is refused is thrown in words. */
  change(change: AlertRuleChange): Promise<AlertRules>;
}

export function rulesServer(settings: ServerConnection.ISettings): RulesServer {
  const ask = async (init: RequestInit): Promise<AlertRules> => {
    const answer = await ServerConnection.makeRequest(
      URLExt.join(settings.baseUrl, 'warpbook/api/v1/alerts/rules'),
      init,
      settings
    );
    const value: unknown = await answer.json().catch(() => null);
    if (!answer.ok) {
      const { message } = (value ?? {}) as { message?: unknown };
      throw new Error(
        typeof message === 'string' && message
          ? message
          : `The server answered HTTP ${answer.status}.`
      );
    }
    if (!isAlertRules(value)) {
      throw new Error(
        "The server's answer has an unknown form; reload the page."
      );
    }
    return value;
  };
  return {
    read: () => ask({ method: 'GET' }),
    change: change => ask({ method: 'POST', body: JSON.stringify(change) })
  };
}
