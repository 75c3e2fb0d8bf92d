import assert from 'node:assert/strict';
import { test } from 'node:test';
import type { TimelineDetails, TimelineWindow } from '../src/shapes/protocol';
import type { Columns } from '../src/timeline/bars';
import { barColumns, foundColumns } from '../src/timeline/bars';
import { detailRows } from '../src/timeline/details';
import { hitAt } from '../src/timeline/hit';
import { arrowsOf } from '../src/timeline/arrows';
import { layOut, rowAt } from '../src/timeline/lanes';
import { frameOf } from '../src/timeline/minimap';
import {
  fitted,
  namesInSlices,
  readableOn,
  shortName
} from '../src/timeline/names';
import type { AtHand } from '../src/timeline/reach';
import { wanted } from '../src/timeline/reach';
import type { TimelinePlot } from '../src/timeline/plot';
import type { Pin } from '../src/timeline/pin';
import { FakeNode, fakeDocument } from './fake_dom';
import { Stage } from '../src/timeline/stage';
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

test('events and merged bars become columns of one length', () => {
  const bars = barColumns(drawn, layOut(drawn.rows, new Set()), 0.25);
  assert.deepEqual([...(bars['left'] ?? [])], [1, 3, 0]);
  assert.deepEqual([...(bars['right'] ?? [])], [1.25, 5, 16]);
  assert.deepEqual([...(bars['colour'] ?? [])], [0, 1, 0]);
  const [top, bottom] = [bars['top'], bars['bottom']] as Float64Array[];
  assert.ok((bottom?.[2] ?? 0) - (top?.[2] ?? 0) < 0.5);
  assert.ok(Math.abs((bottom?.[1] ?? 0) - (top?.[1] ?? 0) - 0.8) < 1e-9);
});

test('a bar has its true width at each zoom', () => {
  fakeDocument();
  const frames: (() => void)[] = [];
  Object.assign(globalThis, {
    window: {
      requestAnimationFrame: (frame: () => void) => frames.push(frame),
      cancelAnimationFrame: () => frames.splice(0)
    }
  });
  const drawnMs: number[] = [];
  const plot = {
    seen: { fromNs: 0, toNs: 16_000_000 },
    pixels: 16,
    frame: { left: 0, top: 0, width: 16, height: 0 },
    palette: [],
    setHeight: () => undefined,
    fill: ({ left, right }: Columns) =>
      drawnMs.push((right?.[0] ?? 0) - (left?.[0] ?? 0))
  };
  const pin = { pinned: null, details: null } as unknown as Pin;
  const stage = new Stage(pin, () => undefined);
  stage.mount(
    plot as unknown as TimelinePlot,
    new FakeNode('div') as unknown as HTMLElement
  );
  const move = (fromNs: number, toNs: number) => {
    plot.seen = { fromNs, toNs };
    stage.moved();
    frames.splice(0).forEach(frame => frame());
  };
  stage.fill(drawn);
  move(1_000_000, 1_016_000);
  // of another part at the same zoom nothing is drawn anew
  move(2_000_000, 2_016_000);
  move(0, 32_000_000);
  // at least a pixel, and else what it took
  assert.deepEqual(
    drawnMs.map(width => Number(width.toFixed(6))),
    [1, 0.001, 2]
  );
});

test('what was found is marked on its row', () => {
  const marks = foundColumns(drawn, layOut(drawn.rows, new Set()), 0.25);
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
  const layout = layOut(drawn.rows, new Set());
  const all = { fromNs: 0, toNs: 6_000_000 };
  const [name, ...others] = namesInSlices(drawn, layout, all, size);
  assert.equal(others.length, 0);
  assert.equal(name?.left, 303);
  assert.equal(name?.width, 194);
  // begins out of sight: the name is where the slice is seen
  const later = { fromNs: 4_000_000, toNs: 10_000_000 };
  assert.equal(namesInSlices(drawn, layout, later, size)[0]?.left, 3);
  const after = { fromNs: 5_000_000, toNs: 11_000_000 };
  assert.deepEqual(namesInSlices(drawn, layout, after, size), []);
  assert.deepEqual(
    namesInSlices(drawn, layout, { fromNs: 0, toNs: 1e9 }, size),
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
  assert.equal(hitAt(many, 0, 20, 1)?.lengthNs, 50);
  assert.equal(hitAt(many, 0, 70, 1), null);
  const met = hitAt(many, 0, 112, 30);
  assert.equal(met?.startNs, 110);
  assert.equal(met.others, 2);
  assert.match(tooltipLines(met).at(-1) ?? '', /^and 2 more here/);
  assert.equal(hitAt(many, 7, 20, 1), null);
});

test('a merged bar says what it holds', () => {
  const hit = hitAt(drawn, 1, 8_000_000, 1);
  assert.deepEqual(hit?.merged, { events: 90, busy: 0.5 });
  assert.match(tooltipLines(hit).join(), /90 events, busy 50.% of 16.0.ms/);
});

const rows: TimelineWindow['rows'] = [
  { label: 'Stream 7', kind: 'gpu', level: 0, events: 2 },
  { label: 'Stream 9', kind: 'gpu', level: 0, events: 0 },
  { label: 'Operators', kind: 'operator', level: 0, events: 9 },
  { label: 'Operators', kind: 'operator', level: 1, events: 5 }
];

test('an empty lane takes no room, and a collapsed one a thin row', () => {
  const open = layOut(rows, new Set());
  assert.deepEqual(
    open.lanes.map(({ label }) => label),
    ['Stream 7', 'Operators']
  );
  assert.equal(open.heights[1], 0);
  assert.equal(open.heights[3], 1);
  const collapsed = layOut(rows, new Set(['operator Operators']));
  assert.equal(collapsed.heights[3], 0);
  assert.ok((collapsed.heights[2] ?? 0) < 1);
  assert.ok(collapsed.height < open.height - 1);
  assert.equal(rowAt(open, open.height - 0.5), 3);
  assert.equal(rowAt(open, 1.05), null);
  assert.equal(rowAt(collapsed, collapsed.height - 0.1), 2);
});

test('an arrow leads from a launch to its kernel, if both are drawn', () => {
  const event = { row: 0, name: 'k', start_ns: 60, duration_ns: 20 };
  const launch = { row: 2, name: 'l', start_ns: 10, duration_ns: 20 };
  const details = { ...DETAILS, event, launch };
  const seen = { fromNs: 0, toNs: 100 };
  const frame = { width: 100, height: 100 };
  const layout = layOut(rows, new Set());
  const [arrow] = arrowsOf(details, layout, seen, frame);
  assert.equal(arrow?.from[0], 20);
  assert.equal(arrow.to[0], 60);
  // the kernel's lane is above
  assert.ok(arrow.to[1] < arrow.from[1]);
  const hidden = { ...details, launch: { ...launch, row: 1 } };
  assert.deepEqual(arrowsOf(hidden, layout, seen, frame), []);
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
