import assert from 'node:assert/strict';
import { test } from 'node:test';
import type { ChartSpec } from '../src/chart/chart';
import { ticksFor, timeLabels } from '../src/chart/scales';
import type { SavedArrangement } from '../src/dashboard/tiles/arrangement';
import { Arrangement } from '../src/dashboard/tiles/arrangement';
import { heat, heatBackground } from '../src/dashboard/tiles/heat';
import { unbroken } from '../src/core/format';
import { Store } from '../src/core/store';
import { frame, HELLO } from './fixtures';

function keeper(kept: unknown) {
  const saved: SavedArrangement[] = [];
  return {
    saved,
    load: () => Promise.resolve(kept),
    save: (arrangement: SavedArrangement) =>
      Promise.resolve(saved.push(arrangement))
  };
}

const CHARTS = ['Memory', 'Power', 'Clocks'].map((title): ChartSpec => ({
  title,
  lines: [],
  top: null,
  height: 100
}));
const titles = (specs: readonly ChartSpec[]) => specs.map(spec => spec.title);

test('a workspace keeps the chosen GPU, hidden lines and the order', async () => {
  const first = keeper(null);
  const before = new Arrangement(first);
  await before.load();
  assert.deepEqual(titles(before.inOrder('gpu/gpu', CHARTS)), titles(CHARTS));
  before.chooseGpu('gpu:b');
  before.toggle('gpu/Clocks', 'sm_clock_mhz');
  before.reorder('gpu/gpu', ['Clocks', 'Memory']);

  const after = new Arrangement(keeper(first.saved.at(-1)));
  await after.load();
  assert.equal(after.chosenGpu, 'gpu:b');
  assert.ok(after.isHidden('gpu/Clocks', 'sm_clock_mhz'));
  // what the order does not name comes last
  assert.deepEqual(titles(after.inOrder('gpu/gpu', CHARTS)), [
    'Clocks',
    'Memory',
    'Power'
  ]);
  after.toggle('gpu/Clocks', 'sm_clock_mhz');
  assert.ok(!after.isHidden('gpu/Clocks', 'sm_clock_mhz'));
});

test('charts that another GPU has keep their place in the order', () => {
  const arrangement = new Arrangement();
  arrangement.reorder('gpu/gpu', ['Clocks', 'Power', 'Memory']);
  arrangement.reorder('gpu/gpu', ['Memory', 'Power']);
  assert.deepEqual(titles(arrangement.inOrder('gpu/gpu', CHARTS)), [
    'Memory',
    'Power',
    'Clocks'
  ]);
});

test('a workspace that somebody made up is as if it were empty', async () => {
  for (const kept of [
    'x',
    { gpu: 7, hidden: [1], order: { a: 'b', c: [1, 'Power'] } },
    { gpu: 'x'.repeat(1_000), hidden: { a: null } }
  ]) {
    const arrangement = new Arrangement(keeper(kept));
    await arrangement.load();
    assert.equal(arrangement.chosenGpu, null);
    assert.ok(!arrangement.isHidden('a', 'b'));
  }
});

test('a strip of activity leaves empty what was not read', () => {
  const store = new Store(() => 0);
  store.message(HELLO);
  store.message(frame(1_000, [100, 0.5]));
  store.message(frame(1_100, [100, 1]));
  const fields = heat(store, 'gpu:a', 'sm_active_ratio', {
    fromMs: 0,
    toMs: 40_000
  });
  assert.equal(fields.length, 40);
  assert.equal(fields[1], 0.75);
  assert.ok(Number.isNaN(fields[0]) && Number.isNaN(fields[2]));
  assert.match(
    heatBackground(fields),
    /^linear-gradient\(to right, transparent/
  );
});

test('a narrow chart of a minute has several ticks at round times', () => {
  const from = new Date(2026, 5, 15, 12, 0, 7).getTime();
  const ticks = ticksFor(from, from + 60_000, 230);
  assert.deepEqual(timeLabels(ticks), ['12:00:20', '12:00:40', '12:01:00']);
  // ten minutes are written without seconds, so more of them fit
  const long = timeLabels(ticksFor(from, from + 600_000, 230));
  assert.deepEqual(long, ['12:02', '12:04', '12:06', '12:08', '12:10']);
});

test('a number and its unit stay on one line', () => {
  const words = unbroken('SM active 93 %, 6.5 GiB of 140 GiB, 3 sentences');
  assert.equal(
    words,
    'SM active 93\u00a0%, 6.5\u00a0GiB of 140\u00a0GiB, 3 sentences'
  );
});
