/** Finds the Jupyter server of this page from a module that can import nothing. */

import type { Endpoint } from '../connection';

interface PageConfig {
  baseUrl?: string;
  wsUrl?: string;
  token?: string;
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
  // logs, and under JupyterHub it is the person's: only another origin needs it.
  const foreign = base.origin !== location.origin && Boolean(config.token);
  if (foreign) {
    stream.searchParams.set('token', config.token ?? '');
  }
  return {
    socket: () => new WebSocket(stream),
    get: path =>
      fetch(new URL(root + path, base), {
        ...(foreign && { headers: { Authorization: `token ${config.token}` } })
      })
  };
}
