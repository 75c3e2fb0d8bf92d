import assert from 'node:assert/strict';
import { test } from 'node:test';
import type { Event, Receipt } from '../src/shapes/protocol';
import { Statements } from '../src/core/statements';
import { Store } from '../src/core/store';
import { frame, GPU, HELLO } from './fixtures';

const CAP = {
  name: 'power cap',
  severity: 'normal',
  share_ratio: 0.6,
  sentence: 'Power cap, 60 % of the last minute.'
} as const;
const IDLE = {
  kind: 'idle',
  sentence: 'Nothing runs.',
  rule: '',
  window_s: 3
} as const;
const FULL_SOON = {
  used_bytes: 1,
  total_bytes: 2,
  slope_bytes_per_s: 1,
  full_in_s: 1,
  sentence: 'Full in 1 s.'
};

function heard() {
  const at = { ms: 0 };
  const store = new Store(() => at.ms);
  const statements = new Statements(store, () => at.ms);
  store.message(HELLO);
  const read = (state: 'ok' | 'lost') =>
    store.message(frame((at.ms += 100), [1, 0], state));
  return { at, statements, read };
}

test('a judgement goes when its GPU is not read, or when no other comes', () => {
  const { at, statements, read } = heard();
  const judge = () => {
    statements.message({
      type: 'verdicts',
      time_ms: at.ms,
      window_s: 10,
      verdicts: { 'gpu:a': IDLE }
    });
    statements.message({
      type: 'health',
      time_ms: at.ms,
      window_s: 60,
      conditions: { 'gpu:a': [CAP] }
    });
    statements.message({
      type: 'outlook',
      time_ms: at.ms,
      window_s: 60,
      devices: { 'gpu:a': FULL_SOON }
    });
  };
  judge();
  assert.equal(statements.verdict(GPU), null);
  assert.deepEqual(statements.health(GPU), []);
  assert.equal(statements.outlook(GPU), null);
  read('ok');
  assert.deepEqual(statements.health(GPU), [CAP]);
  assert.deepEqual(statements.verdict(GPU), IDLE);
  assert.deepEqual(statements.outlook(GPU), FULL_SOON);
  assert.equal(statements.verdict({ ...GPU, id: 'gpu:b' }), null);
  at.ms += 6_000;
  assert.equal(statements.verdict(GPU), null);
  assert.deepEqual(statements.health(GPU), []);
  assert.deepEqual(statements.outlook(GPU), FULL_SOON);
  at.ms += 20_000;
  assert.equal(statements.outlook(GPU), null);
  judge();
  assert.deepEqual(statements.verdict(GPU), IDLE);
  read('lost');
  assert.equal(statements.verdict(GPU), null);
  assert.equal(statements.outlook(GPU), null);
});

test('what the server tells again after a hello is kept once, newest first', () => {
  const { statements } = heard();
  const event = (time_ms: number, device = 'gpu:a'): Event => ({
    type: 'event',
    time_ms,
    device,
    kind: 'xid',
    code: 79,
    severity: 'fault',
    title: 'XID 79',
    meaning: 'Fallen off the bus.',
    remedy: 'Power-cycle the node.'
  });
  let calls = 0;
  statements.onChange(() => (calls += 1));
  [1, 2, 1, 3].forEach(ms => statements.message(event(ms)));
  statements.message(event(2, 'gpu:b'));
  assert.equal(calls, 5);
  assert.deepEqual(
    statements.events(GPU).map(({ time_ms }) => time_ms),
    [3, 2, 1]
  );
  assert.equal(statements.events().length, 4);
});

test('only the newest receipts are kept', () => {
  const { statements } = heard();
  for (let run = 0; run < 150; run += 1) {
    statements.message({
      type: 'receipt',
      cell: { id: `run-${run}` }
    } as Receipt);
  }
  assert.equal(statements.receipts.size, 100);
  assert.ok(statements.receipts.has('run-149'));
});
