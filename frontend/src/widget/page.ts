/** Finds the Jupyter server of this page from a module that can import nothing. */

import type { Endpoint } from '../core/connection';

interface PageConfig {
  baseUrl?: string;
  wsUrl?: string;
  token?: string;
  appendToken?: string;
}

/** Give the page's server; null outside JupyterLab and Notebook. */
export function pageEndpoint(): Endpoint | null {
  const element = document.getElementById('jupyter-config-data');
  let config: PageConfig;
  try {
    config = JSON.parse(element?.textContent ?? '') as PageConfig;
  } catch {
    return null;
  }
  if (typeof config.baseUrl !== 'string') {
    return null;
  }
  const base = new URL(config.baseUrl, location.href);
  const root = `${base.pathname.replace(/\/$/, '')}/warpbook/`;
  const stream = new URL(config.wsUrl || base.href, location.href);
  stream.protocol = base.protocol === 'https:' ? 'wss:' : 'ws:';
  stream.pathname = `${root}api/v1/stream`;
  // The page's own server knows it by its cookie. A token in a URL ends in access
  // logs, and under JupyterHub it is the person's: only another origin needs it, or
  // a hub that takes no cookie on a WebSocket, where JupyterLab is told to append it.
  const { token } = config;
  const foreign = base.origin !== location.origin;
  const append = foreign || config.appendToken?.toLowerCase() === 'true';
  if (token && append) {
    stream.searchParams.set('token', token);
  }
  return {
    socket: () => new WebSocket(stream),
    get: (path, signal) =>
      fetch(new URL(root + path, base), {
        ...(signal && { signal }),
        ...(foreign &&
          token && { headers: { Authorization: `token ${token}` } })
      })
  };
}
