import assert from 'node:assert/strict';
import { test } from 'node:test';
import { statusWords, wallNs } from '../src/dashboard/reports/live';
import { busyRatio, stepNs } from '../src/dashboard/reports/live_chart';
import type { CellReport, LiveWindow } from '../src/shapes/protocol';

const report = (fields: object) =>
  ({ status: 'running', ended_ms: 100_000, ...fields }) as CellReport;

test('a running report says so until nothing is heard of it', () => {
  assert.equal(statusWords(report({}), 101_000), 'running');
  assert.match(statusWords(report({}), 131_000), /^no news since \d\d:\d\d/);
  assert.equal(statusWords(report({ status: 'ok' }), 131_000), '');
  assert.equal(
    statusWords(report({ status: 'interrupted' }), 131_000),
    'interrupted'
  );
});

test('a long cell took its own time, not that of one window', () => {
  const profile = { wall_ns: 900 };
  assert.equal(wallNs(report({ profile, live: { elapsed_ns: 60_000 } })), 6e4);
  assert.equal(wallNs(report({ profile, live: null })), 900);
});

test('a window gives a mean step and a share, or says that it knows none', () => {
  const window = { steps: 4, recorded_ns: 100, gpu_busy_ns: 50 };
  assert.equal(stepNs(window as LiveWindow), 25);
  assert.equal(busyRatio(window as LiveWindow), 0.5);
  assert.equal(busyRatio({ ...window, gpu_busy_ns: null } as LiveWindow), null);
  assert.equal(busyRatio({ ...window, recorded_ns: 0 } as LiveWindow), null);
});
