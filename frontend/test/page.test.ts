import assert from 'node:assert/strict';
import { test } from 'node:test';
import { pageEndpoint } from '../src/widget/page';

/** The URL that the widget's stream is opened with; null without a server. */
function opened(config: object | null): string | null {
  const text = config && JSON.stringify(config);
  Object.assign(globalThis, {
    document: { getElementById: () => text && { textContent: text } },
    location: new URL('https://hub.example/user/ann/lab/tree/a.ipynb'),
    WebSocket: class {
      constructor(readonly url: URL) {}
    }
  });
  const socket = pageEndpoint()?.socket();
  return socket?.url.toString() ?? null;
}

const OWN = { baseUrl: '/user/ann/', token: 't0ken' };
const STREAM = 'wss://hub.example/user/ann/warpbook/api/v1/stream';

test('a token is in the URL only where cookies do not count', () => {
  assert.equal(opened(OWN), STREAM);
  assert.equal(opened({ ...OWN, appendToken: 'false' }), STREAM);
  // as JupyterLab itself does on a hub that takes no cookie on a WebSocket
  const appended = `${STREAM}?token=t0ken`;
  assert.equal(opened({ ...OWN, appendToken: 'True' }), appended);
  assert.equal(opened({ ...OWN, token: '', appendToken: 'true' }), STREAM);
  assert.equal(
    opened({ ...OWN, baseUrl: 'https://other.example/' }),
    'wss://other.example/warpbook/api/v1/stream?token=t0ken'
  );
});

test('a page without a Jupyter server has no endpoint', () => {
  assert.equal(opened(null), null);
  assert.equal(opened({ token: 't0ken' }), null);
});
