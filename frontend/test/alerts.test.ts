import assert from 'node:assert/strict';
import { test } from 'node:test';
import { ActiveAlerts, AlertNews } from '../src/server/alerts';
import type { Band } from '../src/notebook/bands';
import { LongCells } from '../src/notebook/longcells';
import type { Alert, Alerts } from '../src/shapes/protocol';

const HOT: Alert = {
  id: 'temperature/gpu:a/1000',
  rule: 'temperature',
  severity: 'warning',
  device: 'gpu:a',
  title: 'GPU 0 is hot',
  text: 'Check fans.',
  since_ms: 1000,
  until_ms: null,
  kernel_id: null
};
const LOST: Alert = {
  ...HOT,
  id: 'gpu_lost/gpu:a/500',
  rule: 'gpu_lost',
  severity: 'fault',
  title: 'GPU 0 is lost',
  since_ms: 500
};

function message(time_ms: number, ...alerts: Alert[]): Alerts {
  return { type: 'alerts', time_ms, alerts };
}

/** What a tab keeps over a reload. */
function tab() {
  const kept = new Map<string, string>();
  return {
    getItem: (key: string) => kept.get(key) ?? null,
    setItem: (key: string, value: string) => void kept.set(key, value)
  };
}

const ids = (alerts: readonly Alert[]) => alerts.map(({ id }) => id);

test('those that hold come worst first; those that ended are apart', () => {
  const active = new ActiveAlerts();
  let changes = 0;
  active.onChange(() => (changes += 1));
  assert.equal(active.known, false);
  const over = { ...HOT, id: 'over', until_ms: 900 };
  active.message(message(2000, HOT, over, LOST));
  assert.deepEqual(ids(active.list()), [LOST.id, HOT.id]);
  assert.deepEqual(ids(active.ended()), ['over']);
  active.status({ phase: 'waiting', why: '' });
  assert.deepEqual([active.known, active.list()], [false, []]);
  assert.equal(changes, 2);
});

test('an alert is told once, and its end once', () => {
  const news = new AlertNews(tab());
  assert.deepEqual(ids(news.take(message(1000, HOT)).begun), [HOT.id]);
  assert.deepEqual(news.take(message(2000, HOT)).begun, []);
  const ended = message(3000, { ...HOT, until_ms: 2500 });
  assert.deepEqual(ids(news.take(ended).over), [HOT.id]);
  assert.deepEqual(news.take(ended), { begun: [], back: [], over: [] });
});

test('after a reload of the tab only what is new is told', () => {
  const memory = tab();
  new AlertNews(memory).take(message(1000, HOT));
  const reloaded = new AlertNews(memory);
  assert.deepEqual(ids(reloaded.take(message(2000, HOT, LOST)).begun), [
    LOST.id
  ]);
  assert.deepEqual(ids(new AlertNews(tab()).take(message(2000, HOT)).begun), [
    HOT.id
  ]);
});

test('what comes and goes is told anew only after a while', () => {
  const news = new AlertNews(tab());
  news.take(message(1000, HOT));
  news.take(message(2000));
  const again = { ...HOT, id: 'temperature/gpu:a/3000' };
  const flapped = news.take(message(3000, again));
  assert.deepEqual([ids(flapped.begun), ids(flapped.back)], [[], [again.id]]);
  news.take(message(4000));
  const later = { ...HOT, id: 'temperature/gpu:a/later' };
  assert.deepEqual(ids(news.take(message(700_000, later)).begun), [later.id]);
});

test('what becomes worse is told again', () => {
  const news = new AlertNews(tab());
  news.take(message(1000, HOT));
  const worse = news.take(message(2000, { ...HOT, severity: 'fault' }));
  assert.deepEqual(ids(worse.begun), [HOT.id]);
});

test('a memory full of garbage is as good as none', () => {
  for (const garbage of ['{', '{}', '[1, null, {"topic": 3}]']) {
    const memory = { ...tab(), getItem: () => garbage };
    assert.equal(new AlertNews(memory).take(message(1, HOT)).begun.length, 1);
  }
});

test('the end of a long cell is told once, of a short or stopped one never', () => {
  let change: () => void = () => undefined;
  const band = (status: Band['status']): Band => ({
    notebook: 'a.ipynb',
    cellId: null,
    executionCount: 1,
    kernelId: 'k',
    title: 'train()',
    startMs: 0,
    endMs: null,
    status
  });
  const cells = [band('ok'), band('ok'), band('interrupted'), band('error')];
  const shown: string[] = [];
  let least = 60;
  new LongCells(
    {
      onChange: listener => {
        change = listener;
        return () => undefined;
      },
      newest: () => cells
    },
    () => least,
    ({ status }, elapsedMs) => shown.push(`${status} ${elapsedMs}`)
  );
  change();
  [59_999, 60_000, 90_000, 70_000].forEach((endMs, index) => {
    (cells[index] as Band).endMs = endMs;
    change();
  });
  change();
  assert.deepEqual(shown, ['ok 60000', 'error 70000']);
  least = 0;
  cells.push(band('ok'));
  change();
  (cells.at(-1) as Band).endMs = 1e9;
  change();
  assert.equal(shown.length, 2);
});
