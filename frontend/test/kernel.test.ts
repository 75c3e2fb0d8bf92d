import assert from 'node:assert/strict';
import { mock, test } from 'node:test';
import { KernelConnection } from '../src/widget/kernel';
import { HELLO, frame } from './fixtures';

/** A widget's view, and the kernel's end of its comm. */
function mockedPage() {
  mock.timers.enable({ apis: ['setInterval'] });
  const page = Object.assign(new EventTarget(), { hidden: false });
  Object.assign(globalThis, {
    document: page,
    window: { setInterval, clearInterval }
  });
  const sent: unknown[] = [];
  let hears: ((content: unknown) => void) | null = null;
  const connection = new KernelConnection({
    send: content => void sent.push(content),
    on: (_, callback) => (hears = callback),
    off: () => (hears = null)
  });
  const kinds: string[] = [];
  connection.listen({ message: ({ type }) => void kinds.push(type) });
  const view = {};
  connection.demand(view, { rateHz: 10, historySeconds: 60 });
  const say = (message: object) =>
    hears?.({ telemetry: JSON.stringify(message) });
  const leave = () => connection.demand(view, null);
  return { connection, page, sent, kinds, say, leave, hears: () => hears };
}

function pass(seconds: number): void {
  for (let second = 0; second < seconds; second += 1) {
    mock.timers.tick(1_000);
  }
}

test('a view says that it is there until it goes, and not while it is hidden', () => {
  const { page, sent, leave, hears } = mockedPage();
  assert.deepEqual(sent, [{ view: 'here', greeted: false }]);
  pass(6);
  assert.equal(sent.length, 3);
  page.hidden = true;
  pass(60);
  assert.equal(sent.length, 3);
  page.hidden = false;
  page.dispatchEvent(new Event('visibilitychange'));
  assert.equal(sent.length, 4);
  leave();
  pass(60);
  assert.equal(sent.length, 4);
  assert.equal(hears(), null);
  mock.timers.reset();
});

test('a kernel that is silent is told, and may speak again', () => {
  const { connection, kinds, say, sent } = mockedPage();
  assert.match(connection.status.why, /Asking this notebook’s kernel/);
  // frames that another view asked for mean nothing before a hello
  say(frame(1, [1, 1]));
  assert.deepEqual(kinds, []);
  say({ ...HELLO, rate_hz: 5 });
  say(frame(2, [1, 1]));
  assert.deepEqual(kinds, ['hello', 'frame']);
  assert.equal(connection.status.phase, 'open');
  pass(3);
  assert.deepEqual(sent.at(-1), { view: 'here', greeted: true });
  pass(3);
  assert.match(connection.status.why, /Nothing comes from the kernel/);
  say(frame(3, [1, 1]));
  assert.deepEqual(connection.status, { phase: 'open', why: '' });
  mock.timers.reset();
});

test('nonsense and another protocol do no harm', () => {
  const { connection, kinds, say, hears } = mockedPage();
  for (const nonsense of [null, 'x', {}, { telemetry: 1 }]) {
    hears()?.(nonsense);
  }
  say({ ...HELLO, protocol: 99 });
  assert.equal(connection.status.phase, 'refused');
  assert.match(connection.status.why, /version 99/);
  assert.deepEqual(kinds, []);
  mock.timers.reset();
});
