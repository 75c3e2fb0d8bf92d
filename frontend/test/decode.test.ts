import assert from 'node:assert/strict';
import { test } from 'node:test';
import { decode } from '../src/core/decode';
import { PROTOCOL_VERSION } from '../src/shapes/protocol';

const HELLO = {
  type: 'hello',
  protocol: PROTOCOL_VERSION,
  version: '0.1.0',
  time_ms: 1,
  rate_hz: 10,
  devices: [],
  absences: [],
  replay: null
};
const FRAME = {
  type: 'frame',
  seq: 1,
  time_ms: 1,
  readings: [{ device: 0, state: 'ok', values: [1, null], why: '' }],
  label: null
};

const VERDICTS = {
  type: 'verdicts',
  time_ms: 1,
  window_s: 10,
  verdicts: {
    'gpu:a': {
      kind: 'idle',
      sentence: 'Nothing runs.',
      rule: '',
      window_s: 3,
      since_ms: null,
      is_changing: false,
      unit: null
    }
  }
};

const HEALTH = {
  type: 'health',
  time_ms: 1,
  window_s: 60,
  conditions: {
    'gpu:a': [
      { name: 'power cap', severity: 'normal', share_ratio: 0.6, sentence: '' }
    ],
    'gpu:b': []
  }
};

test('messages of the protocol pass unchanged, with fields of a newer server', () => {
  const labelled = { ...FRAME, label: 'bf16 matmul' };
  const newer = { ...FRAME, new_field: 1 };
  for (const message of [HELLO, FRAME, labelled, newer, VERDICTS, HEALTH]) {
    assert.deepEqual(decode(JSON.stringify(message)), message);
  }
});

test('a hello of another version is told apart from garbage', () => {
  assert.deepEqual(decode('{"type": "hello", "protocol": 9}'), {
    type: 'other_protocol',
    protocol: 9
  });
});

test('what has not the shape is null and never throws', () => {
  const surprises = [
    '',
    'null',
    '[]',
    '{"type": "toString"}',
    '{"type": "frame"}',
    '\u0000',
    new ArrayBuffer(3),
    JSON.stringify({ ...FRAME, time_ms: 'soon' }),
    JSON.stringify({ ...FRAME, readings: [{ device: 0, values: 'x' }] }),
    JSON.stringify({ ...FRAME, label: 3 }),
    JSON.stringify({ ...VERDICTS, verdicts: { 'gpu:a': 'idle' } }),
    JSON.stringify({ ...VERDICTS, verdicts: null }),
    JSON.stringify({ ...HEALTH, conditions: { 'gpu:a': {} } }),
    JSON.stringify({
      ...VERDICTS,
      verdicts: Array(201).fill({ kind: '', sentence: '', rule: '' })
    }),
    JSON.stringify({ ...HELLO, devices: [null] }),
    JSON.stringify({ ...HELLO, replay: 3 }),
    JSON.stringify({ type: 'cell_report', id: '../x' })
  ];
  for (const surprise of surprises) {
    assert.equal(decode(surprise), null);
  }
});

test('what an older server left out is filled in, for each message anew', () => {
  const older = {
    type: 'frame',
    seq: 1,
    time_ms: 1,
    readings: [{ device: 0, state: 'stale' }]
  };
  const first = decode(JSON.stringify(older));
  assert.deepEqual(first, {
    ...older,
    readings: [{ device: 0, state: 'stale', values: [], why: '' }],
    label: null
  });
  (first as unknown as typeof FRAME).readings[0]?.values.push(1);
  const second = decode(JSON.stringify(older)) as unknown as typeof FRAME;
  assert.deepEqual(second.readings[0]?.values, []);
});

test("a newer server's word costs no message", () => {
  const newer = {
    ...FRAME,
    readings: [{ ...FRAME.readings[0], state: 'new' }]
  };
  assert.deepEqual(decode(JSON.stringify(newer)), newer);
});

test('more than a page could draw, and what is no number, is no message', () => {
  const many = { ...FRAME, readings: Array(201).fill(FRAME.readings[0]) };
  assert.equal(decode(JSON.stringify(many)), null);
  assert.notEqual(
    decode(JSON.stringify({ ...many, readings: many.readings.slice(1) })),
    null
  );
  const endless = JSON.stringify(FRAME).replace(
    '"time_ms":1',
    '"time_ms":1e999'
  );
  assert.equal(decode(endless), null);
});
