import assert from 'node:assert/strict';
import type { TestContext } from 'node:test';
import { test } from 'node:test';
import type { TimelineWindow } from '../src/protocol';
import { Windows } from '../src/timeline/windows';
import { fakeConnection, fakeTimers } from './fake_page';

/** A run of 100 µs, of which a person sees a part; requests fail while `isLost`. */
function timeline(context: TestContext) {
  const pass = fakeTimers(context);
  const connection = fakeConnection();
  const state = { isLost: false, text: '', said: '', requests: 0 };
  const screen = { seen: { fromNs: 40_000, toNs: 41_000 }, pixels: 300 };
  const filled: TimelineWindow[] = [];
  const source = {
    window: ({ fromNs, toNs }: { fromNs: number; toNs: number }) => {
      state.requests += 1;
      return state.isLost
        ? Promise.reject(new Error('Failed to fetch'))
        : Promise.resolve({
            from_ns: fromNs,
            to_ns: toNs,
            first_ns: 0,
            last_ns: 100_000,
            step_ns: 1,
            bars: []
          } as unknown as TimelineWindow);
    }
  };
  const windows = new Windows(source, connection, {
    screen: () => screen,
    text: () => state.text,
    fill: drawn => filled.push(drawn),
    tell: problem => (state.said = problem)
  });
  return { pass, connection, state, screen, filled, windows };
}

test('a part whose request was lost is drawn though nobody moves', async context => {
  const { pass, state, filled, windows } = timeline(context);
  state.isLost = true;
  windows.moved();
  await pass(1_000);
  assert.deepEqual([state.requests, state.said], [1, 'Failed to fetch']);
  // 2, 4 and 8 s after a failure
  await pass(16_000);
  assert.equal(state.requests, 4);
  state.isLost = false;
  await pass(16_000);
  assert.deepEqual([state.requests, filled.length], [5, 1]);
});

test('a lost part is asked for at once when the connection returns', async context => {
  const { pass, connection, state, filled, windows } = timeline(context);
  state.isLost = true;
  windows.moved();
  await pass(1_000);
  state.isLost = false;
  connection.comeBack();
  await pass(1);
  assert.deepEqual([state.requests, filled.length], [2, 1]);
});

test('who moves on is not asked to wait, and gets no second answer', async context => {
  const { pass, state, screen, filled, windows } = timeline(context);
  state.isLost = true;
  windows.moved();
  await pass(1_000);
  state.isLost = false;
  screen.seen = { fromNs: 70_000, toNs: 71_000 };
  windows.moved();
  await pass(1_000);
  assert.equal(filled[0]?.from_ns, 69_000);
  await pass(60_000);
  assert.equal(state.requests, 2);
});

test('a timeline that is closed asks for nothing', async context => {
  const { pass, connection, state, windows } = timeline(context);
  state.isLost = true;
  windows.moved();
  await pass(1_000);
  windows.dispose();
  connection.comeBack();
  await pass(60_000);
  assert.deepEqual([state.requests, connection.isHeard()], [1, false]);
});
