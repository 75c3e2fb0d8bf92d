import assert from 'node:assert/strict';
import { test } from 'node:test';
import type { ISettingRegistry } from '@jupyterlab/settingregistry';
import { Settings } from '../src/settings';

test('a view that is gone hears of no setting any more', async () => {
  let change: () => unknown = () => null;
  const loaded = {
    get: () => ({ composite: 5 }),
    changed: { connect: (slot: () => void) => (change = slot) }
  };
  const settings = new Settings();
  await settings.load(
    { load: () => Promise.resolve(loaded) } as unknown as ISettingRegistry,
    'x'
  );
  let heard = 0;
  const stop = settings.onChange(() => (heard += 1));
  change();
  stop();
  change();
  assert.equal(heard, 1);
});
