import assert from 'node:assert/strict';
import { test } from 'node:test';
import type { TimelineDetails, TimelineWindow } from '../src/shapes/protocol';
import { ticks } from '../src/timeline/axis';
import { detailRows } from '../src/timeline/details';
import { edges, SeenRange } from '../src/timeline/frame';
import { hitAt } from '../src/timeline/hit';
import { arrowsOf } from '../src/timeline/arrows';
import { AXIS_PIXELS, layOut, rowAt } from '../src/timeline/lanes';
import { frameOf } from '../src/timeline/minimap';
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

const DETAILS: TimelineDetails = {
  event: { row: 0, name: 'gemm', start_ns: 60, duration_ns: 20 },
  label: 'Stream 7',
  kind: 'gpu',
  facts: {
    grid: null,
    block: null,
    registers_per_thread: null,
    shared_memory_bytes: null,
    occupancy_ratio: null,
    size_bytes: null,
    dims: [],
    dtypes: []
  },
  line: 3,
  launch: null,
  launched: [],
  launched_events: 0
};

test('what is seen is asked for with a screen on either side', () => {
  const part = wanted(seen, 300, null);
  assert.deepEqual(part, { fromNs: 0, toNs: 3000, steps: 450 });
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

const drawn: TimelineWindow = {
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

test('a bar has its true width at each zoom, or the least', () => {
  for (const lengthNs of [2 ** 40, 2 ** 20, 1000, 20]) {
    const frame = { seen: { fromNs: 0, toNs: lengthNs }, width: 1000 };
    for (const took of [0, 1, 13, 100, 2 ** 20]) {
      const [left, right] = edges(7, took, frame);
      const true_ = (took * frame.width) / lengthNs;
      if (true_ < 10_000) {
        assert.ok(Math.abs(right - left - Math.max(true_, 1)) <= 1);
      }
      // what is nested in it is no wider
      const [inner, end] = edges(7 + took / 4, took / 2, frame);
      assert.ok(inner >= left && end - inner <= right - left);
    }
  }
});

test('what is under the pointer stays there while a person zooms', () => {
  const range = new SeenRange('cell r-1', { fromNs: 0, toNs: 1000 });
  range.zoom(0.5, 0.25);
  assert.deepEqual(range.part, { fromNs: 125, toNs: 625 });
  range.zoom(1e-9, 0.25);
  assert.ok(range.part.toNs - range.part.fromNs >= 20);
});

test('ticks have the digits that tell them apart', () => {
  const texts = (fromNs: number, toNs: number) =>
    ticks({ seen: { fromNs, toNs }, width: 500 })
      .map(({ text }) => text.replace('\u00a0', ' '))
      .join(', ');
  assert.equal(texts(0, 2e9), '0.0 s, 0.5 s, 1.0 s, 1.5 s, 2.0 s');
  assert.equal(texts(1_000_900, 1_002_000), '1.0010 ms, 1.0015 ms, 1.0020 ms');
  assert.equal(texts(0, 20), '0 ns, 5 ns, 10 ns, 15 ns, 20 ns');
});

test('a part is named with digits that tell its ends apart', () => {
  const words = (fromNs: number, toNs: number) =>
    partWords({ fromNs, toNs }).replaceAll('\u00a0', ' ');
  assert.equal(words(0, 2e9), '0.00 s to 2.00 s (2.00 s)');
  assert.equal(words(0, 2e8), '0 ms to 200 ms (200 ms)');
  assert.equal(
    words(1.7345e9, 1.7345e9 + 1000),
    '1.73450000 s to 1.73450100 s (1.00 µs)'
  );
  assert.equal(
    words(1_000_000, 1_000_500),
    '1.000000 ms to 1.000500 ms (0.50 µs)'
  );
});

const NONE = { collapsed: new Set<string>(), pinned: new Set<string>() };
const frameOver = (fromNs: number, toNs: number, width = 600) => ({
  seen: { fromNs, toNs },
  width,
  height: 400,
  scroll: 0
});

test('names stand where slices are seen and wide enough', () => {
  const layout = layOut(drawn.rows, NONE);
  const names = (fromNs: number, toNs: number) =>
    namesInSlices(drawn, 0, layout, frameOver(fromNs, toNs));
  const [name, ...others] = names(0, 6_000_000);
  assert.equal(others.length, 0);
  assert.equal(name?.left, 303);
  assert.equal(name?.width, 194);
  // begins out of sight: the name is where the slice is seen
  assert.equal(names(4_000_000, 10_000_000)[0]?.left, 3);
  assert.deepEqual(names(5_000_000, 11_000_000), []);
  assert.deepEqual(names(0, 1e9), []);
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
    ...drawn,
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
  const near = frameOver(0, 200, 200);
  assert.equal(hitAt(many, 0, 20, near)?.lengthNs, 50);
  assert.equal(hitAt(many, 0, 70, near), null);
  const met = hitAt(many, 0, 11.2, frameOver(0, 200, 20));
  assert.equal(met?.startNs, 110);
  assert.equal(met.others, 2);
  assert.match(tooltipLines(met).at(-1) ?? '', /^and 2 more here/);
  assert.equal(hitAt(many, 7, 20, near), null);
});

test('a merged bar says what it holds', () => {
  const hit = hitAt(drawn, 1, 80, frameOver(0, 16_000_000, 160));
  assert.deepEqual(hit?.merged, { events: 90, busy: 0.5 });
  assert.match(tooltipLines(hit).join(), /90 events, busy 50.% of 16.0.ms/);
});

const rows: TimelineWindow['rows'] = [
  { label: 'Stream 7', kind: 'gpu', level: 0, events: 2 },
  { label: 'Stream 9', kind: 'gpu', level: 0, events: 0 },
  { label: 'Operators', kind: 'operator', level: 0, events: 9 },
  { label: 'Operators', kind: 'operator', level: 1, events: 5 }
];

test('an empty lane takes no room, a collapsed one a thin row', () => {
  const open = layOut(rows, NONE);
  assert.deepEqual(
    open.lanes.map(({ label }) => label),
    ['Stream 7', 'Operators']
  );
  assert.equal(open.heights[1], 0);
  assert.equal(open.heights[3], 1);
  const operators = new Set(['operator Operators']);
  const collapsed = layOut(rows, { ...NONE, collapsed: operators });
  assert.equal(collapsed.heights[3], 0);
  assert.ok((collapsed.heights[2] ?? 0) < 1);
  assert.ok(collapsed.height < open.height - 1);
});

test('a pinned lane stands above the others, which scroll', () => {
  const pinned = new Set(['operator Operators']);
  const layout = layOut(rows, { ...NONE, pinned });
  assert.deepEqual(
    layout.lanes.map(({ label }) => label),
    ['Operators', 'Stream 7']
  );
  const at = (y: number, scroll: number) =>
    rowAt(layout, AXIS_PIXELS + y, { scroll });
  assert.deepEqual([at(5, 0), at(25, 0), at(50, 0)], [2, 3, 0]);
  assert.deepEqual([at(5, 15), at(25, 15), at(45, 15)], [2, 3, 0]);
  assert.equal(rowAt(layout, 5, { scroll: 0 }), null);
});

test('an arrow leads from a launch to its kernel, if both are drawn', () => {
  const event = { row: 0, name: 'k', start_ns: 60, duration_ns: 20 };
  const launch = { row: 2, name: 'l', start_ns: 10, duration_ns: 20 };
  const details = { ...DETAILS, event, launch };
  const frame = frameOver(0, 100, 100);
  const layout = layOut(rows, NONE);
  const [arrow] = arrowsOf(details, layout, frame);
  assert.equal(arrow?.from[0], 20);
  assert.equal(arrow.to[0], 60);
  // the kernel's lane is above
  assert.ok(arrow.to[1] < arrow.from[1]);
  const hidden = { ...details, launch: { ...launch, row: 1 } };
  assert.deepEqual(arrowsOf(hidden, layout, frame), []);
});

test('of an event only what is known is listed', () => {
  const details = {
    ...DETAILS,
    facts: {
      ...DETAILS.facts,
      dims: [[64, 128], []],
      dtypes: ['c10::Half', 'Scalar']
    }
  };
  const known = Object.fromEntries(detailRows(details));
  assert.equal(known['Shapes'], 'Half [64, 128]');
  assert.deepEqual(Object.keys(known), [
    'Lane',
    'Start',
    'Duration',
    'Line',
    'Shapes'
  ]);
});

test('the frame of the minimap stays in it and can be taken hold of', () => {
  const whole = { fromNs: 0, toNs: 1000 };
  assert.deepEqual(frameOf({ fromNs: 100, toNs: 300 }, whole, 500), {
    left: 50,
    width: 100
  });
  assert.deepEqual(frameOf({ fromNs: -500, toNs: 5000 }, whole, 500), {
    left: 0,
    width: 500
  });
  assert.deepEqual(frameOf({ fromNs: 999, toNs: 1000 }, whole, 500), {
    left: 492,
    width: 8
  });
});
