import assert from 'node:assert/strict';
import type { TestContext } from 'node:test';
import { test } from 'node:test';
import type { TimelineWindow } from '../src/shapes/protocol';
import { HttpError } from '../src/core/reading';
import { TimelineSource } from '../src/timeline/source';
import { Windows } from '../src/timeline/windows';
import { fakeConnection, fakeTimers } from './fake_page';

const LOST_WORDS = 'Failed to fetch Trying again.';

/** A run of 100 µs, of which a person sees a part; requests fail while `isLost`. */
function timeline(context: TestContext) {
  const pass = fakeTimers(context);
  const connection = fakeConnection();
  const state = {
    isLost: false,
    failure: new Error('Failed to fetch'),
    text: '',
    said: '',
    requests: 0
  };
  const screen = { seen: { fromNs: 40_000, toNs: 41_000 }, pixels: 300 };
  const filled: TimelineWindow[] = [];
  const source = {
    window: ({ fromNs, toNs }: { fromNs: number; toNs: number }) => {
      state.requests += 1;
      return state.isLost
        ? Promise.reject(state.failure)
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
  assert.deepEqual([state.requests, state.said], [1, LOST_WORDS]);
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

test('who drags during an outage gets the part soon after it', async context => {
  const { pass, state, filled, windows } = timeline(context);
  state.isLost = true;
  for (let drag = 0; drag < 12; drag += 1) {
    windows.moved();
    await pass(70);
  }
  assert.equal(state.requests, 12);
  state.isLost = false;
  await pass(2_000);
  assert.deepEqual([state.requests, filled.length], [13, 1]);
});

test('a report that is not kept any more is asked for only by who moves', async context => {
  const { pass, connection, state, windows } = timeline(context);
  state.isLost = true;
  state.failure = new HttpError(404, 'No such report is kept.');
  windows.moved();
  await pass(600_000);
  connection.comeBack();
  assert.deepEqual(
    [state.requests, state.said],
    [1, 'No such report is kept.']
  );
  windows.moved();
  await pass(1_000);
  assert.equal(state.requests, 2);
});

test('a request that hangs ends after 30 s, and is made again', async context => {
  const pass = fakeTimers(context);
  let requests = 0;
  let said = '';
  const read = (_: string, signal?: AbortSignal) => {
    requests += 1;
    return new Promise<Response>((_, reject) => {
      signal?.addEventListener('abort', () => reject(new Error('aborted')));
    });
  };
  const screen = { seen: { fromNs: 0, toNs: 1_000 }, pixels: 300 };
  const windows = new Windows(
    new TimelineSource({ read }, 'r-1'),
    fakeConnection(),
    {
      screen: () => screen,
      text: () => '',
      fill: () => undefined,
      tell: problem => (said = problem)
    }
  );
  windows.moved();
  await pass(30_000);
  assert.deepEqual([requests, said], [1, '']);
  await pass(1_000);
  assert.equal(said, 'The server did not answer within 30 s. Trying again.');
  await pass(2_000);
  assert.equal(requests, 2);
});
