import assert from 'node:assert/strict';
import { test } from 'node:test';
import { Details } from '../src/chart/details';
import { History } from '../src/history';
import type { Detail } from '../src/protocol';

const SPAN = { fromMs: 0, toMs: 3_600_000 };

Object.assign(globalThis, { window: { setTimeout, clearTimeout } });

/** A server's history that answers each request with `answer`. */
function server(answer: (url: URL) => Response) {
  const urls: URL[] = [];
  const read = async (path: string) => {
    const url = new URL(path, 'http://server/');
    urls.push(url);
    return await Promise.resolve(url).then(answer);
  };
  return { urls, history: new History({ read }) };
}

/** Details of it, and how to wait until the next has come. */
function details(history: History, retryMs?: number) {
  let arrived: () => void = () => undefined;
  const shelf = new Details(
    history,
    () => 10,
    () => arrived(),
    retryMs
  );
  const next = () => new Promise<void>(resolve => (arrived = resolve));
  return { shelf, next };
}

function steps(url: URL): Response {
  const count = Number(url.searchParams.get('steps'));
  const from_ms = Number(url.searchParams.get('from_ms'));
  const column = { least: [0, null], mean: [1, null], most: [2, null] };
  const detail: Detail = {
    device: url.searchParams.get('device') ?? '',
    from_ms,
    step_ms: (Number(url.searchParams.get('to_ms')) - from_ms) / count,
    columns: Object.fromEntries(
      (url.searchParams.get('metrics') ?? '')
        .split(',')
        .map(name => [name, column])
    )
  };
  return Response.json(detail);
}

test('all charts of a device ask once, and draw what came until the next', async () => {
  const { urls, history } = server(steps);
  const { shelf, next } = details(history);
  const draw = (span = SPAN) => {
    shelf.samples('gpu:a', ['power_watts'], span, false);
    return shelf.samples('gpu:a', ['sm_active_ratio'], span, false);
  };
  assert.equal(draw(), null);
  draw();
  await next();
  assert.equal(urls.length, 1);
  const query = urls[0]?.searchParams;
  assert.equal(query?.get('metrics'), 'power_watts,sm_active_ratio');
  assert.equal(query?.get('steps'), '600');

  const samples = draw();
  assert.deepEqual(samples?.times, [3_000, 9_000]);
  const column = samples?.column('sm_active_ratio');
  assert.deepEqual(Array.from(column?.mean ?? []), [1, NaN]);
  assert.deepEqual(Array.from(column?.range?.most ?? []), [2, NaN]);
  assert.equal(samples?.column('unknown'), null);

  assert.notEqual(draw({ fromMs: 0, toMs: 20_000 }), null);
  await next();
  // two readings a step
  assert.equal(urls[1]?.searchParams.get('steps'), '100');
  draw({ fromMs: 0, toMs: 20_000 });
  assert.equal(urls.length, 2);
});

test('what fails is told in the words of the server, and draws nothing', async () => {
  const { history } = server(() => {
    throw new Error('That is too old.');
  });
  const { shelf, next } = details(history);
  shelf.samples('gpu:a', ['power_watts'], SPAN, false);
  await next();
  assert.match(shelf.problem, /That is too old\./);
  assert.equal(shelf.samples('gpu:a', ['power_watts'], SPAN, false), null);
});

test('a span whose request was lost is asked for again', async () => {
  let isLost = true;
  const { urls, history } = server(url => {
    if (isLost) {
      throw new Error('Failed to fetch');
    }
    return steps(url);
  });
  const { shelf, next } = details(history, 1);
  const draw = () => shelf.samples('gpu:a', ['power_watts'], SPAN, false);
  draw();
  await next();
  assert.notEqual(shelf.problem, '');
  isLost = false;
  // it calls for another drawing, which asks
  await next();
  draw();
  await next();
  assert.deepEqual([urls.length, shelf.problem], [2, '']);
  assert.notEqual(draw(), null);
});

test('an answer of another shape is refused', async () => {
  const { history } = server(() => Response.json({ steps: [] }));
  await assert.rejects(history.detail('gpu:a', [], SPAN, 1), /unknown form/);
  await assert.rejects(history.span(SPAN), /unknown form/);
  const run = { ...SPAN, kernelId: 'k', cellId: null, title: 'a & b' };
  await assert.rejects(history.receipt(run), /unknown form/);
});

test('a file is named by the server', async () => {
  const { urls, history } = server(
    () =>
      new Response('time_ms\n', {
        headers: { 'Content-Disposition': 'attachment; filename="h.csv"' }
      })
  );
  assert.equal((await history.export('csv', SPAN)).name, 'h.csv');
  assert.equal(urls[0]?.searchParams.get('to_ms'), '3600000');
  assert.equal((await history.page('r-1')).name, 'h.csv');
  await history.export('csv', null);
  assert.equal(urls[2]?.searchParams.has('to_ms'), false);
});
