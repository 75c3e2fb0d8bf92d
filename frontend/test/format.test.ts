import assert from 'node:assert/strict';
import { test } from 'node:test';
import { roundTop, tickLabels, timeTicks } from '../src/chart/scales';
import {
  clip,
  duration,
  durationNs,
  text,
  usedOfTotal
} from '../src/core/format';

/** No-break spaces as people see them. */
const seen = (value: string) => value.replaceAll('\u00a0', ' ');

test('values have the units that people expect', () => {
  assert.equal(seen(text(0.957, 'ratio')), '96 %');
  assert.equal(seen(text(12.34 * 2 ** 30, 'bytes')), '12.3 GiB');
  assert.equal(seen(text(1023.9 * 2 ** 20, 'bytes')), '1.00 GiB');
  assert.equal(seen(text(3.55e9, 'bytes_per_s')), '3.55 GB/s');
  assert.equal(seen(text(690.4, 'watts')), '690 W');
  assert.equal(
    seen(usedOfTotal(12.34 * 2 ** 30, 140.4 * 2 ** 30)),
    '12.3/140 GiB'
  );
  // the same as where it stands alone, though the total is rounded
  assert.equal(
    seen(usedOfTotal(79.8 * 2 ** 30, 140.4 * 2 ** 30)),
    '79.8/140 GiB'
  );
});

test('nothing known is a dash, not a zero', () => {
  for (const nothing of [null, undefined, NaN, Infinity]) {
    assert.equal(text(nothing, 'watts'), '–');
    assert.equal(duration(nothing), '–');
  }
  assert.equal(seen(usedOfTotal(null, 140.4 * 2 ** 30)), '–/140 GiB');
});

test('durations change their unit with their size', () => {
  assert.equal(seen(duration(0.0123)), '12.3 µs');
  assert.equal(seen(duration(3.2)), '3.20 ms');
  assert.equal(seen(duration(3200)), '3.20 s');
  assert.equal(seen(duration(64_000)), '1 min 04 s');
  assert.equal(seen(durationNs(12_300)), '12.3 µs');
  assert.equal(seen(durationNs(0)), '0 ms');
});

test('long names are cut', () => {
  assert.equal(clip('x'.repeat(1_000), 10), `${'x'.repeat(9)}…`);
});

test('axes end at round numbers and have few ticks', () => {
  assert.equal(roundTop(617, 'watts'), 1000);
  assert.equal(roundTop(0, 'bytes_per_s'), 1e6);
  assert.deepEqual(tickLabels([0, 5e9, 1e10], 'bytes_per_s').map(seen), [
    '0',
    '5',
    '10 GB/s'
  ]);
  assert.deepEqual(
    timeTicks(1_000, 61_000, 4),
    [15_000, 30_000, 45_000, 60_000]
  );
});
