import assert from 'node:assert/strict';
import { readFileSync } from 'node:fs';
import { test } from 'node:test';
import { inspect } from 'node:util';
import type { ISettingRegistry } from '@jupyterlab/settingregistry';
import { Settings } from '../src/core/settings';

interface Property {
  readonly default: unknown;
  readonly minimum?: number;
  readonly maximum?: number;
}

const { properties } = JSON.parse(
  readFileSync('schema/plugin.json', 'utf8')
) as { properties: Record<string, Property> };

/** Settings that a registry gives, and a way to change them. */
async function loadedWith(values: Record<string, unknown>) {
  let change: () => unknown = () => null;
  const loaded = {
    get: (name: string) => ({ composite: values[name] }),
    changed: { connect: (slot: () => void) => (change = slot) }
  };
  const settings = new Settings();
  await settings.load(
    { load: () => Promise.resolve(loaded) } as unknown as ISettingRegistry,
    'x'
  );
  return { settings, change: () => change() };
}

/** What the code makes of the schema's properties. */
function read(settings: Settings): Record<string, unknown> {
  return {
    rate_hz: settings.rateHz,
    window_s: settings.windowSeconds,
    panel: settings.panel,
    status_bar: settings.statusBar,
    notify: settings.notify,
    notify_long_cell_s: settings.longCellSeconds
  };
}

test('a view that is gone hears of no setting any more', async () => {
  const { settings, change } = await loadedWith({});
  let heard = 0;
  const stop = settings.onChange(() => (heard += 1));
  change();
  stop();
  change();
  assert.equal(heard, 1);
});

test('a setting that changes holds at once', async () => {
  const values: Record<string, unknown> = { rate_hz: 2, panel: false };
  const { settings, change } = await loadedWith(values);
  assert.equal(settings.rateHz, 2);
  assert.equal(settings.panel, false);
  values['rate_hz'] = 5;
  values['panel'] = true;
  change();
  assert.equal(settings.rateHz, 5);
  assert.equal(settings.panel, true);
});

test('the defaults of the code are those of the schema', () => {
  for (const [name, value] of Object.entries(read(new Settings()))) {
    assert.equal(value, properties[name]?.default, name);
  }
  assert.deepEqual(
    Object.keys(read(new Settings())).sort(),
    Object.keys(properties).sort()
  );
});

for (const hostile of [NaN, Infinity, -1, 0, 1e9, '5', null, [], undefined]) {
  test(`a setting of ${inspect(hostile)} stays within the schema`, async () => {
    const all = Object.keys(properties).map(name => [name, hostile]);
    const { settings } = await loadedWith(
      Object.fromEntries(all) as Record<string, unknown>
    );
    for (const [name, value] of Object.entries(read(settings))) {
      const { minimum, maximum } = properties[name] as Property;
      assert.equal(typeof value, typeof properties[name]?.default, name);
      if (minimum !== undefined && maximum !== undefined) {
        assert.ok(Number(value) >= minimum && Number(value) <= maximum, name);
      }
    }
  });
}
