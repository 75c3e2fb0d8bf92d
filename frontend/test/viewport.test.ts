import assert from 'node:assert/strict';
import { test } from 'node:test';
import { Viewport } from '../src/core/viewport';

const HOUR = 3_600_000;

function viewport(windowMs = 60_000) {
  const clock = { ms: 10 * HOUR };
  const view = new Viewport(() => clock.ms, windowMs);
  const length = () => view.span().toMs - view.span().fromMs;
  return { clock, view, length };
}

test('it follows now until it is held, and goes on with the same window', () => {
  const { clock, view } = viewport();
  assert.deepEqual(view.span(), { fromMs: clock.ms - 60_000, toMs: clock.ms });
  view.hold();
  const held = view.span();
  clock.ms += 5_000;
  assert.deepEqual(view.span(), held);
  assert.equal(view.following, false);
  view.follow();
  assert.deepEqual(view.span(), { fromMs: clock.ms - 60_000, toMs: clock.ms });
});

test('zooming keeps the time under the pointer where it is', () => {
  const { view, length } = viewport();
  const { fromMs } = view.span();
  view.zoom(0.5, 0.25);
  assert.equal(length(), 30_000);
  assert.equal(view.span().fromMs + 30_000 * 0.25, fromMs + 60_000 * 0.25);
});

test('nothing is shown that has not been, or that the server has forgotten', () => {
  const { clock, view, length } = viewport();
  view.pan(3);
  assert.equal(view.span().toMs, clock.ms);
  view.pan(-1000);
  assert.equal(view.span().fromMs, clock.ms - HOUR);
  assert.equal(length(), 60_000);
  view.toStart();
  assert.equal(view.span().fromMs, clock.ms - HOUR);
  view.zoom(1e9);
  assert.equal(length(), HOUR);
  view.zoom(1e-9);
  assert.equal(length(), 2_000);
});

test('another window keeps the end of what is held', () => {
  const { view, length } = viewport();
  view.pan(-2);
  const { toMs } = view.span();
  view.setWindow(300_000);
  assert.equal(length(), 300_000);
  assert.equal(view.span().toMs, toMs);
  view.follow();
  assert.equal(length(), 300_000);
});

test('the start is where the oldest reading is, not where one could be', () => {
  const clock = { ms: 10 * HOUR };
  const oldestMs = 9.5 * HOUR;
  const view = new Viewport(
    () => clock.ms,
    60_000,
    () => 5 * HOUR,
    () => oldestMs
  );
  view.toStart();
  const toMs = oldestMs + 60_000;
  assert.deepEqual(view.span(), { fromMs: oldestMs, toMs });
  // of less than the window: all of it, and what was before
  view.setWindow(HOUR);
  view.toStart();
  assert.equal(view.span().toMs, clock.ms);
});
