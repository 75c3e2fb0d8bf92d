import assert from 'node:assert/strict';
import { test } from 'node:test';
import { Store } from '../src/core/store';
import type { Feed } from '../src/widget/feed';
import { Monitor } from '../src/widget/view';
import type { FakeNode } from './fake_dom';
import { fakeDocument } from './fake_dom';
import { fakeConnection, fakeTimers } from './fake_page';

test('why a widget shows nothing is said on a line that was there before', async context => {
  const pass = fakeTimers(context);
  fakeDocument();
  Object.assign(document, {
    body: {},
    addEventListener: () => undefined,
    removeEventListener: () => undefined
  });
  class Observer {
    observe = () => undefined;
    disconnect = () => undefined;
  }
  Object.assign(globalThis, {
    MutationObserver: Observer,
    IntersectionObserver: Observer,
    requestAnimationFrame: () => 0,
    cancelAnimationFrame: () => undefined
  });
  const feed = {
    store: new Store(),
    connection: {
      ...fakeConnection(),
      demand: () => undefined,
      status: { phase: 'open', why: '' }
    },
    reader: 'server',
    note: ''
  } as Feed;
  const model = {
    get: () => null,
    on: () => undefined,
    off: () => undefined
  };
  const monitor = new Monitor(model, feed);
  const [line] = (monitor.node as unknown as FakeNode).querySelectorAll(
    '[role=status]'
  );
  assert.deepEqual([line?.textContent, line?.hidden], ['', false]);
  await pass(1_000);
  assert.equal(line?.textContent, 'This server sees no GPU.');
  monitor.dispose();
});
