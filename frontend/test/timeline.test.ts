import assert from 'node:assert/strict';
import { test } from 'node:test';
import type { TimelineWindow } from '../src/protocol';
import { barColumns, foundColumns } from '../src/timeline/bars';
import { hitAt } from '../src/timeline/hit';
import { layOut } from '../src/timeline/lanes';
import {
  fitted,
  namesInSlices,
  readableOn,
  shortName
} from '../src/timeline/names';
import type { AtHand } from '../src/timeline/reach';
import { wanted } from '../src/timeline/reach';
import { tooltipLines } from '../src/timeline/tooltip';
import { partWords } from '../src/timeline/selection';

const seen = { fromNs: 1000, toNs: 2000 };
const atHand = (change: Partial<AtHand>): AtHand => ({
  fromNs: 0,
  toNs: 3000,
  stepNs: 0,
  ...change
});

test('what is seen is asked for with a screen on either side', () => {
  const asked = wanted(seen, 300, null);
  assert.deepEqual(asked, { fromNs: 0, toNs: 3000, steps: 450 });
});

test('moving within what is at hand asks for nothing', () => {
  assert.equal(wanted(seen, 300, atHand({})), null);
  const moved = { fromNs: 1600, toNs: 2600 };
  assert.equal(wanted(moved, 300, atHand({})), null);
  assert.notEqual(wanted({ fromNs: 1800, toNs: 2800 }, 300, atHand({})), null);
});

test('where all is at hand only coarse bars are asked for again', () => {
  const all = { fromNs: -Infinity, toNs: Infinity };
  assert.equal(wanted(seen, 300, atHand(all)), null);
  assert.equal(wanted(seen, 300, atHand({ ...all, stepNs: 8 })), null);
  assert.notEqual(wanted(seen, 300, atHand({ ...all, stepNs: 16 })), null);
});

const told: TimelineWindow = {
  from_ns: 0,
  to_ns: 100,
  step_ns: 16,
  first_ns: 0,
  last_ns: 100,
  omitted: 0,
  rows: [
    { label: 'Stream 7', kind: 'gpu', level: 0, events: 2 },
    { label: 'Operators', kind: 'operator', level: 0, events: 90 }
  ],
  bars: [
    {
      is_merged: false,
      starts_ns: [1_000_000, 3_000_000],
      durations_ns: [0, 2_000_000],
      names: [0, 21],
      counts: [],
      busy_ratios: [],
      found: [1]
    },
    {
      is_merged: true,
      starts_ns: [0],
      durations_ns: [16_000_000],
      names: [0],
      counts: [90],
      busy_ratios: [0.5],
      found: []
    }
  ],
  names: { 0: 'gemm', 21: 'x'.repeat(500) }
};

test('events and merged bars become columns of one length', () => {
  const bars = barColumns(told, layOut(told.rows, new Set()), 0.25);
  assert.deepEqual([...(bars['left'] ?? [])], [1, 3, 0]);
  assert.deepEqual([...(bars['right'] ?? [])], [1.25, 5, 16]);
  assert.deepEqual([...(bars['colour'] ?? [])], [0, 1, 0]);
  const [top, bottom] = [bars['top'], bars['bottom']] as Float64Array[];
  assert.ok((bottom?.[2] ?? 0) - (top?.[2] ?? 0) < 0.5);
  assert.ok(Math.abs((bottom?.[1] ?? 0) - (top?.[1] ?? 0) - 0.8) < 1e-9);
});

test('what was found is marked on its row', () => {
  const marks = foundColumns(told, layOut(told.rows, new Set()), 0.25);
  assert.deepEqual([...(marks['left'] ?? [])], [3]);
  assert.deepEqual([...(marks['top'] ?? [])], [0]);
});

test('a part is named with digits that tell its ends apart', () => {
  const words = (fromNs: number, toNs: number) =>
    partWords({ fromNs, toNs }).replaceAll('\u00a0', ' ');
  assert.equal(words(0, 2e9), '0 ms to 2000 ms (2.00 s)');
  assert.equal(
    words(1_000_000, 1_000_500),
    '1.000000 ms to 1.000500 ms (0.50 µs)'
  );
});

const size = { width: 600, height: 40 };

test('names stand where slices are seen and wide enough', () => {
  const layout = layOut(told.rows, new Set());
  const all = { fromNs: 0, toNs: 6_000_000 };
  const [name, ...others] = namesInSlices(told, layout, all, size);
  assert.equal(others.length, 0);
  assert.equal(name?.left, 303);
  assert.equal(name?.width, 194);
  // begins out of sight: the name is where the slice is seen
  const later = { fromNs: 4_000_000, toNs: 10_000_000 };
  assert.equal(namesInSlices(told, layout, later, size)[0]?.left, 3);
  const after = { fromNs: 5_000_000, toNs: 11_000_000 };
  assert.deepEqual(namesInSlices(told, layout, after, size), []);
  assert.deepEqual(
    namesInSlices(told, layout, { fromNs: 0, toNs: 1e9 }, size),
    []
  );
});

test('a name is cut to the room that there is', () => {
  const measure = (text: string) => 10 * Array.from(text).length;
  assert.equal(fitted('aten::mm', 80, measure), 'aten::mm');
  assert.equal(fitted('aten::mm', 60, measure), 'aten:…');
  assert.equal(fitted('aten::mm', 20, measure), '');
  assert.equal(fitted('😀😀😀😀', 30, measure), '😀😀…');
});

test('a kernel is named without return type and namespaces', () => {
  assert.equal(
    shortName('void at::native::(anonymous namespace)::copy<float>(int)'),
    'copy<float>(int)'
  );
  assert.equal(shortName('aten::mm'), 'aten::mm');
});

test('ink is read on its colour', () => {
  assert.equal(readableOn('#1f77b4'), '#ffffff');
  assert.equal(readableOn('#ffbb78'), '#000000');
});

test('the event at a moment is found, and how many hide behind it', () => {
  const many = {
    ...told,
    bars: [
      {
        is_merged: false,
        starts_ns: [0, 100, 110, 120],
        durations_ns: [50, 8, 8, 9],
        names: [0, 21, 0, 0],
        counts: [],
        busy_ratios: [],
        found: []
      }
    ]
  };
  assert.equal(hitAt(many, 0, 20, 1)?.lengthNs, 50);
  assert.equal(hitAt(many, 0, 70, 1), null);
  const met = hitAt(many, 0, 112, 30);
  assert.equal(met?.startNs, 110);
  assert.equal(met.others, 2);
  assert.match(tooltipLines(met).at(-1) ?? '', /^and 2 more here/);
  assert.equal(hitAt(many, 7, 20, 1), null);
});

test('a merged bar says what it holds', () => {
  const hit = hitAt(told, 1, 8_000_000, 1);
  assert.deepEqual(hit?.merged, { events: 90, busy: 0.5 });
  assert.match(tooltipLines(hit).join(), /90 events, busy 50.% of 16.0.ms/);
});
