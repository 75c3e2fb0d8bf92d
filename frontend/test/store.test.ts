import assert from 'node:assert/strict';
import { test } from 'node:test';
import { Store } from '../src/core/store';
import { frame, GPU, HELLO } from './fixtures';

function column(store: Store, metric: string): number[] {
  const [start, end] = store.range(-Infinity, Infinity);
  return [...(store.column('gpu:a', metric, start, end) ?? [])];
}

function greeted(clientNow?: () => number): Store {
  const store = new Store(clientNow);
  store.message(HELLO);
  return store;
}

test('a missing value is a break, never zero', () => {
  const store = greeted();
  store.message(frame(100, [7, 0.5]));
  store.message(frame(200, [null, 0.25]));
  store.message(frame(300, [], 'lost'));
  assert.deepEqual(column(store, 'power_watts'), [7, NaN, NaN]);
  assert.deepEqual(column(store, 'sm_active_ratio'), [0.5, 0.25, NaN]);
  assert.equal(store.value(GPU, 'power_watts'), null);
  assert.equal(store.latest(GPU).state, 'lost');
});

test('nothing is of now while there is no connection', () => {
  const store = greeted();
  store.message(frame(100, [7, 0.5]));
  store.status({ phase: 'waiting', why: 'The connection was lost.' });
  assert.deepEqual(store.latest(GPU), {
    state: 'stale',
    why: 'The connection was lost.',
    values: []
  });
  assert.equal(store.value(GPU, 'power_watts'), null);
  store.status({ phase: 'open', why: '' });
  assert.equal(store.latest(GPU).state, 'ok');
});

test('a gap breaks the line, announced or not', () => {
  const store = greeted();
  store.message(frame(100, [1, 0]));
  store.message({
    type: 'gap',
    from_ms: 100,
    to_ms: 900,
    reason: 'not_watched',
    message: 'nobody watched'
  });
  store.message(frame(900, [2, 0]));
  store.message(frame(9_000, [3, 0]));
  assert.deepEqual(column(store, 'power_watts'), [1, NaN, 2, NaN, 3]);
});

test('frames that come twice or late are left out', () => {
  const store = greeted();
  store.message(frame(100, [1, 0]));
  store.message(frame(100, [2, 0]));
  store.message(frame(50, [3, 0]));
  assert.deepEqual(column(store, 'power_watts'), [1]);
});

test('ten minutes are kept, in order, however long it runs', () => {
  const store = greeted();
  for (let at = 1; at <= 20_000; at += 1) {
    store.message(frame(at * 100, [at, 0]));
  }
  const [start, end] = store.range(1_400_000, Infinity);
  const times = store.times(start, end);
  assert.equal(times[times.length - 1], 2_000_000);
  assert.ok(end - start >= 6_000);
  assert.deepEqual(
    [...(store.column('gpu:a', 'power_watts', start, end) ?? [])],
    [...times].map(time => time / 100)
  );
});

test('a slice starts with the row before it, so that lines enter from the left', () => {
  const store = greeted();
  [100, 200, 300].forEach(time => store.message(frame(time, [time, 0])));
  const [start, end] = store.range(150, 1_000);
  assert.deepEqual([...store.times(start, end)], [100, 200, 300]);
});

test('values follow their metric when the descriptions change', () => {
  const store = greeted();
  store.message(frame(100, [1, 0.5]));
  const turned = { ...GPU, metrics: [...GPU.metrics].reverse() };
  const message = { type: 'devices', time_ms: 150, devices: [turned] } as const;
  store.message({ ...message, absences: [] });
  store.message(frame(200, [0.25, 2]));
  assert.deepEqual(column(store, 'power_watts'), [1, 2]);
  assert.equal(store.value(turned, 'power_watts'), 2);
});

test('what is not there is over when it comes', () => {
  const store = new Store();
  const silent = {
    what: 'GPU 0',
    reason: 'unknown' as const,
    message: 'It hangs.',
    remedy: ''
  };
  store.message({ ...HELLO, devices: [], absences: [silent] });
  assert.deepEqual(store.absences, [silent]);
  store.message({
    type: 'devices',
    time_ms: 150,
    devices: [GPU],
    absences: []
  });
  assert.deepEqual(store.absences, []);
});

test('a reading of a device that was never described is ignored', () => {
  const store = greeted();
  store.message({
    ...frame(100, [1, 0]),
    readings: [{ device: 7, state: 'ok', values: [1], why: '' }]
  });
  assert.deepEqual(column(store, 'power_watts'), [NaN]);
});

/** A store, and the clocks of the browser and the server, which agree at first. */
function clocks() {
  const at = { client: 0, server: 0 };
  const store = greeted(() => at.client);
  const watch = (seconds: number) => {
    for (let tick = 0; tick < seconds * 10; tick += 1) {
      at.client += 100;
      at.server += 100;
      store.message(frame(at.server, [1, 0]));
    }
  };
  return { at, store, watch };
}

test('charts end at the newest frame, also after a clock was set', () => {
  const { at, store, watch } = clocks();
  watch(5);
  for (const [client, server] of [
    [60_000, 0],
    [-60_000, 0],
    [0, 60_000],
    [0, -60_000]
  ] as const) {
    at.client += client;
    at.server += server;
    watch(3);
    assert.equal(store.now(), at.server);
  }
});

test('frames of the past, which come in a burst, say nothing about the clocks', () => {
  const at = { client: 600_000 };
  const store = new Store(() => at.client);
  store.message({ ...HELLO, time_ms: 600_000 });
  for (let ms = 0; ms < 600_000; ms += 100) {
    at.client += 0.1;
    store.message(frame(ms, [1, 0]));
    assert.equal(store.offsetMs, 0);
  }
});

test('a value that is no longer new is no value', () => {
  const { at, store, watch } = clocks();
  watch(1);
  at.client += 5_000;
  assert.equal(store.value(GPU, 'power_watts'), 1);
  at.client += 1;
  assert.equal(store.value(GPU, 'power_watts'), null);
  watch(1);
  assert.equal(store.value(GPU, 'power_watts'), 1);
});

test('what a recording was made of is told once for each change', () => {
  const store = greeted();
  const values: (string | null)[] = [];
  store.message(frame(100, [1, 0]));
  store.onChange(() => values.push(store.label));
  ['idle', 'idle', 'bf16 matmul', null].forEach((label, index) => {
    store.message({ ...frame(200 + index, [1, 0]), label });
  });
  assert.deepEqual(values, ['idle', 'bf16 matmul', null]);
});
