import assert from 'node:assert/strict';
import { test } from 'node:test';
import { runTimes, statusWords } from '../src/dashboard/reports/live';
import { busyRatio, stepNs } from '../src/dashboard/reports/live_chart';
import type {
  CellProfile,
  CellReport,
  LiveWindow
} from '../src/shapes/protocol';

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

test('the list of reports has the times without the profiler, as the reports', () => {
  const idle = { host_wait_ns: 10, kernel_wait_ns: 20, other_ns: 0 };
  const profile = { wall_ns: 900, gpu_busy_ns: 90, bare: null };
  const bare = { gpu_busy_ns: 70, idle };
  const of = (fields: object) =>
    runTimes({ ...profile, ...fields } as CellProfile);
  assert.deepEqual(of({}), { busyNs: 90, wholeNs: 900 });
  assert.deepEqual(of({ bare }), { busyNs: 70, wholeNs: 100 });
});

test('a window gives a mean step and a share, or says that it knows none', () => {
  const window = { steps: 4, recorded_ns: 100, gpu_busy_ns: 50 };
  assert.equal(stepNs(window as LiveWindow), 25);
  assert.equal(busyRatio(window as LiveWindow), 0.5);
  assert.equal(busyRatio({ ...window, gpu_busy_ns: null } as LiveWindow), null);
  assert.equal(busyRatio({ ...window, recorded_ns: 0 } as LiveWindow), null);
});
