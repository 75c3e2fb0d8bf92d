import assert from 'node:assert/strict';
import { test } from 'node:test';
import { PastCells } from '../src/chart/pastcells';
import { timeLabels, timeTicks } from '../src/chart/scales';
import { MONTH_MS, Viewport } from '../src/core/viewport';
import { dayBegin, dayEnd, isDayOrNone } from '../src/dashboard/find/find';
import { isRecordList } from '../src/shapes/stream';
import { duration, when } from '../src/core/format';
import { cellBand, Handover, RefusalError } from '../src/notebook/handover';
import type { Band, Bands } from '../src/notebook/bands';
import type { CellBand, KeptRecord } from '../src/shapes/protocol';
import { ANYTHING, Records } from '../src/server/records';
import { fakeConnection, fakeTimers } from './fake_page';

const HOUR = 3_600_000;
const DAY = 24 * HOUR;
/** Noon, in the zone of whoever runs this. */
const NOON = new Date(2026, 5, 15, 12).getTime();
const CELL: KeptRecord = {
  kind: 'cell',
  id: 'm-0',
  started_ms: NOON - 2_000,
  ended_ms: NOON - 1_000,
  notebook: 'a/b.ipynb',
  kernel_id: 'k',
  cell_id: 'c',
  title: 'x = 1',
  verdict: null,
  status: 'ok',
  sentence: '',
  is_replay: false
};

test('ticks of days are midnights, and say which day', () => {
  const ticks = timeTicks(NOON - 7 * DAY, NOON, 8);
  assert.ok(ticks.length >= 6);
  for (const tick of ticks) {
    assert.equal(new Date(tick).getHours(), 0);
  }
  assert.equal(timeLabels(ticks).at(-1), '06-15');
});

test('ticks of hours say the day where one begins', () => {
  const labels = timeLabels(timeTicks(NOON - DAY, NOON, 10));
  assert.ok(labels.includes('06-15'));
  assert.ok(labels.includes('09:00'));
});

test('a moment of another day is told with its day', () => {
  assert.equal(when(NOON, NOON + HOUR), '12:00:00');
  assert.equal(when(NOON, NOON + DAY), '2026-06-15 12:00:00');
});

test('long times are told in hours and days', () => {
  const seen = (text: string) => text.replaceAll('\u00a0', ' ');
  assert.equal(seen(duration(HOUR + 5 * 60_000)), '1 h 05 min');
  assert.equal(seen(duration(2 * DAY + 3 * HOUR)), '2 d 3 h');
});

test('with an archive one can look back a month, and without an hour', () => {
  let longest = MONTH_MS;
  const view = new Viewport(
    () => NOON,
    60_000,
    () => longest
  );
  view.show({ fromMs: NOON - 40 * DAY, toMs: NOON - 39 * DAY });
  assert.equal(view.span().fromMs, NOON - MONTH_MS);
  assert.equal(view.span().toMs - view.span().fromMs, DAY);
  view.zoom(1000);
  assert.equal(view.span().toMs - view.span().fromMs, MONTH_MS);
  longest = HOUR;
  view.toStart();
  assert.equal(view.span().fromMs, NOON - HOUR);
});

test('a search asks only for what was chosen', async () => {
  const urls: string[] = [];
  const records = new Records({
    read: path => {
      urls.push(path);
      return Promise.resolve(
        new Response(JSON.stringify({ records: [], has_more: false }))
      );
    }
  });
  await records.find({
    ...ANYTHING,
    text: 'a b&c',
    kinds: ['cell', 'receipt']
  });
  assert.equal(
    urls[0],
    'api/v1/records?limit=20&text=a+b%26c&kind=cell%2Creceipt'
  );
  await assert.rejects(records.report('x'), /unknown form/);
  assert.equal(urls[1], 'api/v1/records/report/x');
});

test('an answer that is no list of records is refused', () => {
  assert.ok(isRecordList({ records: [], has_more: false }));
  assert.ok(!isRecordList({ records: [{ id: 1 }], has_more: false }));
  assert.ok(!isRecordList({ records: [] }));
});

test('a day is from midnight to midnight where the person is', () => {
  assert.equal(new Date(dayBegin('2026-06-15') ?? 0).getHours(), 0);
  const end = dayEnd('2026-06-15') ?? 0;
  assert.equal(new Date(end + 1).getDate(), 16);
  assert.equal(dayBegin(''), null);
  assert.equal(dayEnd('nonsense'), null);
});

test('what is no day is told, and not taken for any day', () => {
  for (const wrong of ['15.6.2026', '2026-06-31', '2026-13-01', '9999-01-01']) {
    assert.ok(!isDayOrNone(wrong), wrong);
    assert.equal(dayEnd(wrong), null);
  }
  assert.ok(isDayOrNone(' ') && isDayOrNone(' 2026-06-15 '));
});

function band(id: string, changes: Partial<Band> = {}): Band {
  return {
    id,
    notebook: 'a/b.ipynb',
    cellId: 'c',
    executionCount: 1,
    kernelId: 'k',
    title: 'x = 1',
    startMs: 1000,
    endMs: 1500,
    status: 'ok',
    ...changes
  };
}

test('a cell is handed over in the clock of the server', () => {
  const cell = cellBand(band('m-1', { title: 'x'.repeat(500) }), 400);
  assert.equal(cell.started_ms, 600);
  assert.equal(cell.ended_ms, 1100);
  assert.equal(cell.title.length, 200);
  // a clock that was set meanwhile makes no cell end before it begins
  assert.equal(cellBand(band('m-2', { endMs: 900 }), 0).ended_ms, 1000);
});

test('a title is never cut within a character', () => {
  for (const length of [198, 199, 200]) {
    const { title } = cellBand(
      band('m-3', { title: 'x'.repeat(length - 1) + '😀😀' }),
      0
    );
    assert.ok(title.length <= 200);
    assert.equal(
      new TextDecoder().decode(new TextEncoder().encode(title)),
      title
    );
  }
});

/** Cells that ended, and how to say that there is another. */
function endedCells() {
  const ended: Band[] = [];
  let listener: () => void = () => undefined;
  const bands = {
    ended: () => ended,
    onChange: (given: () => void) => {
      listener = given;
      return () => undefined;
    }
  } as unknown as Bands;
  return { ended, bands, changed: () => listener() };
}

test('each cell that ended is handed over once, and again if it was refused', async context => {
  const pass = fakeTimers(context);
  const { ended, bands, changed } = endedCells();
  const sent: string[][] = [];
  let refuses = true;
  let isKept = false;
  new Handover({
    bands,
    connection: fakeConnection(),
    isKept: () => isKept,
    offsetMs: () => 0,
    post: (cells: readonly CellBand[]) => {
      sent.push(cells.map(({ id }) => id));
      return refuses ? Promise.reject(new Error('full')) : Promise.resolve();
    }
  });
  const settle = () => {
    changed();
    return pass(1_000);
  };
  ended.push(band('m-1'));
  await settle();
  assert.deepEqual(sent, []);
  isKept = true;
  await settle();
  refuses = false;
  await settle();
  ended.push(band('m-2'));
  await settle();
  await settle();
  assert.deepEqual(sent, [['m-1'], ['m-1'], ['m-2']]);
  // the last one has no other after it
  refuses = true;
  ended.push(band('m-3'));
  await settle();
  refuses = false;
  await pass(31_000);
  assert.deepEqual(sent.slice(3), [['m-3'], ['m-3']]);
});

test('more cells than the server takes at once are all handed over', async context => {
  const pass = fakeTimers(context);
  const { ended, bands, changed } = endedCells();
  const sent: number[] = [];
  new Handover({
    bands,
    connection: fakeConnection(),
    isKept: () => true,
    offsetMs: () => 0,
    post: cells => {
      sent.push(cells.length);
      return Promise.resolve();
    }
  });
  ended.push(...Array.from({ length: 450 }, (_, cell) => band(`m-${cell}`)));
  changed();
  await pass(10_000);
  assert.deepEqual(sent, [200, 200, 50]);
});

test('a cell that is refused keeps none of the cells after it', async context => {
  const pass = fakeTimers(context);
  const { ended, bands, changed } = endedCells();
  const taken = new Set<string>();
  let requests = 0;
  new Handover({
    bands,
    connection: fakeConnection(),
    isKept: () => true,
    offsetMs: () => 0,
    post: cells => {
      requests += 1;
      if (cells.some(({ id }) => id === 'm-7')) {
        return Promise.reject(new RefusalError('garbage'));
      }
      cells.forEach(({ id }) => taken.add(id));
      return Promise.resolve();
    }
  });
  ended.push(...Array.from({ length: 450 }, (_, cell) => band(`m-${cell}`)));
  changed();
  await pass(10_000);
  // 200 at once, each of them, 200 and 50
  assert.deepEqual([taken.size, requests], [449, 1 + 200 + 2]);
});

test('many cells that no server takes are not sent more often than few', async context => {
  const pass = fakeTimers(context);
  const { ended, bands, changed } = endedCells();
  let requests = 0;
  new Handover({
    bands,
    connection: fakeConnection(),
    isKept: () => true,
    offsetMs: () => 0,
    post: () => {
      requests += 1;
      return Promise.reject(new Error('full'));
    }
  });
  ended.push(...Array.from({ length: 450 }, (_, cell) => band(`m-${cell}`)));
  changed();
  await pass(29_000);
  assert.equal(requests, 1);
});

test('many requests that failed are made again as one', async context => {
  const pass = fakeTimers(context);
  const { ended, bands, changed } = endedCells();
  let requests = 0;
  const connection = fakeConnection();
  new Handover({
    bands,
    connection,
    isKept: () => true,
    offsetMs: () => 0,
    post: () => {
      requests += 1;
      return Promise.reject(new Error('full'));
    }
  });
  for (let cell = 0; cell < 10; cell += 1) {
    ended.push(band(`m-${cell}`));
    changed();
    await pass(2_000);
  }
  assert.equal(requests, 10);
  // 30, 60 and 120 s from a failure on, and one until cells have settled
  await pass(31_000 + 61_000 + 121_000 - 19_000);
  assert.equal(requests, 13);
  // as soon as the server is there again
  connection.comeBack();
  await pass(1_000);
  assert.equal(requests, 14);
});

test('cells of the past are asked for again where the request was lost', async context => {
  const pass = fakeTimers(context);
  let requests = 0;
  let draw: () => number = () => 0;
  const cells = new PastCells(
    {
      find: () => {
        requests += 1;
        return requests === 1
          ? Promise.reject(new Error('Failed to fetch'))
          : Promise.resolve({ records: [CELL], has_more: false });
      }
    },
    fakeConnection(),
    () => draw()
  );
  const span = { fromMs: NOON - HOUR, toMs: NOON };
  const never = () => false;
  const nothing = () => undefined;
  draw = () => cells.marks(span, never, () => 0, nothing).length;
  assert.equal(draw(), 0);
  await pass(200);
  assert.equal(draw(), 0);
  await pass(9_000);
  assert.equal(requests, 1);
  // it calls for another drawing, which asks
  await pass(1_000);
  await pass(200);
  assert.deepEqual([requests, draw()], [2, 1]);
});

test('cells of the past are asked for less and less where it is in vain', async context => {
  const pass = fakeTimers(context);
  let requests = 0;
  const connection = fakeConnection();
  let draw: () => unknown = () => null;
  const cells = new PastCells(
    {
      find: () => {
        requests += 1;
        return Promise.reject(new Error('The archive can not be read.'));
      }
    },
    connection,
    () => void draw()
  );
  const span = { fromMs: NOON - HOUR, toMs: NOON };
  const never = () => false;
  const nothing = () => undefined;
  draw = () => cells.marks(span, never, () => 0, nothing);
  draw();
  await pass(3_600_000);
  // after 0, 10, 30, 70, 150, 310, 630 s, and each 320 s from then on
  assert.equal(requests, 16);
  connection.comeBack();
  await pass(1_000);
  assert.equal(requests, 17);
  // a dashboard that is closed asks for nothing
  cells.dispose();
  await pass(3_600_000);
  assert.equal(requests, 17);
});

test('a cell that is refused costs no other, and is not sent again', async context => {
  const pass = fakeTimers(context);
  let changed: () => void = () => undefined;
  const bands = {
    ended: () => ['m-1', 'wrong', 'm-2'].map(id => band(id)),
    onChange: (listener: () => void) => {
      changed = listener;
      return () => undefined;
    }
  } as unknown as Bands;
  const sent: string[][] = [];
  new Handover({
    bands,
    connection: fakeConnection(),
    isKept: () => true,
    offsetMs: () => 0,
    post: (cells: readonly CellBand[]) => {
      sent.push(cells.map(({ id }) => id));
      return cells.some(({ id }) => id === 'wrong')
        ? Promise.reject(new RefusalError('garbage'))
        : Promise.resolve();
    }
  });
  for (let round = 0; round < 2; round += 1) {
    changed();
    await pass(1_000);
  }
  assert.deepEqual(sent, [
    ['m-1', 'wrong', 'm-2'],
    ['m-1'],
    ['wrong'],
    ['m-2']
  ]);
});
