import assert from 'node:assert/strict';
import { mock, test } from 'node:test';
import type { Endpoint } from '../src/core/connection';
import { Connection } from '../src/core/connection';
import { PROTOCOL_VERSION } from '../src/shapes/protocol';

const HELLO = {
  type: 'hello',
  protocol: PROTOCOL_VERSION,
  version: '0.1.0',
  time_ms: 1_000,
  rate_hz: 10,
  devices: [],
  absences: [],
  replay: null
};
const FRAME = {
  type: 'frame',
  seq: 1,
  time_ms: 2_000,
  readings: [],
  label: null
};

/** The server's end of one socket. */
class Socket {
  readyState = 1;
  onmessage: ((event: { data: string }) => void) | null = null;
  onclose: ((event: { code: number }) => void) | null = null;
  readonly sent: string[] = [];

  send(message: string): void {
    this.sent.push(message);
  }

  close(): void {
    this.readyState = 2;
  }

  say(message: object): void {
    this.onmessage?.({ data: JSON.stringify(message) });
  }
}

/** A page with a connection that one view watches. */
function connected() {
  mock.timers.enable({ apis: ['setInterval', 'setTimeout'] });
  const page = Object.assign(new EventTarget(), { hidden: false });
  const timers = { setInterval, clearInterval, setTimeout, clearTimeout };
  Object.assign(globalThis, {
    document: page,
    window: Object.assign(new EventTarget(), timers),
    WebSocket: { OPEN: 1 }
  });
  const sockets: Socket[] = [];
  const endpoint = {
    socket: () => {
      const socket = new Socket();
      sockets.push(socket);
      return socket;
    },
    get: () => Promise.reject(new Error('not asked here'))
  };
  const connection = new Connection(endpoint as unknown as Endpoint);
  connection.demand({}, { rateHz: 10, historySeconds: 60 });
  return { connection, sockets, page };
}

/** Let seconds go by, one after the other. */
function pass(
  seconds: number,
  everySecond: () => void = () => undefined
): void {
  for (let second = 0; second < seconds; second += 1) {
    mock.timers.tick(1_000);
    everySecond();
  }
}

test('a connection that says nothing more is dropped and made anew', () => {
  const { connection, sockets } = connected();
  sockets[0]?.say(HELLO);
  pass(60, () => sockets[0]?.say(FRAME));
  assert.equal(connection.status.phase, 'open');
  assert.equal(sockets.length, 1);

  pass(6);
  assert.equal(sockets[0]?.readyState, 2);
  assert.match(connection.status.why, /Nothing came from the server for 6 s/);
  pass(1);
  assert.equal(sockets.length, 2);
  sockets[1]?.say(HELLO);
  assert.equal(connection.status.phase, 'open');
  // what was missed is asked for, and the dead socket has no say any more
  assert.match(sockets[1]?.sent[0] ?? '', /"since_ms":2000\b/);
  sockets[0]?.onclose?.({ code: 4002 });
  sockets[0]?.say({ ...HELLO, protocol: PROTOCOL_VERSION + 1 });
  assert.equal(connection.status.phase, 'open');
  mock.timers.reset();
});

test('nothing is expected by a hidden page, nor faster than the server reads', () => {
  const hidden = connected();
  hidden.sockets[0]?.say(HELLO);
  hidden.page.hidden = true;
  hidden.page.dispatchEvent(new Event('visibilitychange'));
  pass(60);
  assert.equal(hidden.connection.status.phase, 'open');
  mock.timers.reset();

  const slow = connected();
  slow.sockets[0]?.say({ ...HELLO, rate_hz: 0.2 });
  pass(15);
  assert.equal(slow.connection.status.phase, 'open');
  pass(1);
  assert.equal(slow.connection.status.phase, 'waiting');
  mock.timers.reset();
});

test("a hello that can't be read is said in words, and not tried for ever", () => {
  const { connection, sockets } = connected();
  sockets[0]?.say({ ...HELLO, devices: 'none' });
  assert.equal(connection.status.phase, 'refused');
  assert.match(
    connection.status.why,
    /hello can't be read; .* Reload the page/
  );
  pass(60);
  assert.equal(sockets.length, 1);
  mock.timers.reset();
});
