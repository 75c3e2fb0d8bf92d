import assert from 'node:assert/strict';
import type { TestContext } from 'node:test';
import { test } from 'node:test';
import { Details } from '../src/chart/details';
import { DrawLoop } from '../src/chart/loop';
import { Viewport } from '../src/core/viewport';
import { History } from '../src/server/history';
import type { Detail } from '../src/shapes/protocol';
import { HttpError } from '../src/core/reading';
import type { Store } from '../src/core/store';
import { fakeConnection, fakeTimers } from './fake_page';

const SPAN = { fromMs: 0, toMs: 3_600_000 };

Object.assign(globalThis, { window: { setTimeout, clearTimeout } });

/** A server's history that answers each request with `answer`. */
function server(answer: (url: URL) => Response | Promise<Response>) {
  const urls: URL[] = [];
  const read = async (path: string, signal?: AbortSignal) => {
    const url = new URL(path, 'http://server/');
    urls.push(url);
    return await Promise.race([
      Promise.resolve(url).then(answer),
      new Promise<never>((_, reject) => {
        signal?.addEventListener('abort', () => reject(new Error('aborted')));
      })
    ]);
  };
  return { urls, history: new History({ read }) };
}

/** Details of it, and how to wait until the next has come. */
function details(history: History) {
  let arrived: () => void = () => undefined;
  const shelf = new Details(
    history,
    fakeConnection(),
    () => 10,
    () => arrived()
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

/** Two GPUs over an hour; the requests for those in `lost` fail. */
function twoGpus(context: TestContext) {
  const pass = fakeTimers(context);
  const lost = new Set<string>();
  const state = { failure: new Error('Failed to fetch'), hangs: false };
  const { urls, history } = server(url => {
    if (lost.has(url.searchParams.get('device') ?? '')) {
      throw state.failure;
    }
    return state.hangs ? new Promise<Response>(() => undefined) : steps(url);
  });
  const connection = fakeConnection();
  const view = { span: SPAN, following: false, seen: ['gpu:a', 'gpu:b'] };
  const draw = () =>
    view.seen.map(device =>
      shelf.samples(device, ['power_watts'], view.span, view.following)
    );
  const shelf = new Details(history, connection, () => 10, draw);
  /** How often each was asked for. */
  const requests = () =>
    ['gpu:a', 'gpu:b'].map(
      device =>
        urls.filter(url => url.searchParams.get('device') === device).length
    );
  return { pass, lost, state, connection, view, draw, shelf, requests };
}

test('a span whose request was lost is asked for again, less and less', async context => {
  const { pass, lost, connection, draw, shelf, requests } = twoGpus(context);
  lost.add('gpu:b');
  draw();
  await pass(2_000);
  assert.deepEqual(requests(), [1, 1]);
  // 5, 10, 20, 40, 80 s after a failure, and 160 s from then on
  await pass(16_000);
  assert.deepEqual(requests(), [1, 3]);
  await pass(582_000);
  assert.deepEqual(requests(), [1, 8]);
  lost.clear();
  connection.comeBack();
  await pass(2_000);
  assert.deepEqual([requests(), shelf.problem], [[1, 9], '']);
  assert.notEqual(draw()[1], null);
});

test('what is missing of one GPU is said while the other is answered', async context => {
  const { pass, lost, view, draw, shelf, requests } = twoGpus(context);
  lost.add('gpu:a');
  draw();
  await pass(2_000);
  assert.match(shelf.problem, /Failed to fetch/);
  // another part: the answer for one says nothing of the other
  view.span = { fromMs: 1_000_000, toMs: 4_600_000 };
  draw();
  await pass(2_000);
  assert.deepEqual(requests(), [2, 2]);
  assert.match(shelf.problem, /Failed to fetch/);
  lost.clear();
  await pass(10_000);
  assert.deepEqual([requests(), shelf.problem], [[3, 2], '']);
});

test('a view that follows now does not ask for what fails with each draw', async context => {
  const { pass, lost, view, draw, requests } = twoGpus(context);
  lost.add('gpu:b');
  view.following = true;
  for (let atMs = 0; atMs < 60_000; atMs += 1_000) {
    view.span = { fromMs: atMs, toMs: atMs + 3_600_000 };
    draw();
    await pass(1_000);
  }
  const [answered = 0, failed] = requests();
  // 5, 10 and 20 s after a failure
  assert.equal(failed, 4);
  assert.ok(answered >= 8, `${answered} requests`);
});

test('what failed of a GPU is asked for again though its chart is out of sight', async context => {
  const { pass, lost, view, draw, shelf, requests } = twoGpus(context);
  lost.add('gpu:b');
  draw();
  await pass(2_000);
  assert.match(shelf.problem, /Failed to fetch/);
  view.seen = ['gpu:a'];
  lost.clear();
  await pass(5_000);
  assert.deepEqual([requests(), shelf.problem], [[1, 2], '']);
});

test('a request that hangs does not freeze a view that follows now', async context => {
  const { pass, state, view, draw, shelf, requests } = twoGpus(context);
  view.following = true;
  state.hangs = true;
  draw();
  await pass(31_000);
  assert.match(shelf.problem, /did not answer within 30 s/);
  state.hangs = false;
  await pass(5_000);
  assert.deepEqual([requests(), shelf.problem], [[2, 2], '']);
});

test('what the server refuses is said, and not asked for again', async context => {
  const { pass, lost, state, connection, draw, shelf, requests } =
    twoGpus(context);
  lost.add('gpu:b');
  state.failure = new HttpError(404, 'There is no device.');
  draw();
  await pass(600_000);
  connection.comeBack();
  await pass(1_000);
  assert.deepEqual(requests(), [1, 1]);
  assert.match(shelf.problem, /There is no device\.$/);
});

test('a problem of the past is not said of a view that the store holds', async context => {
  const { pass, lost, draw, shelf } = twoGpus(context);
  Object.assign(globalThis, {
    document: Object.assign(new EventTarget(), { hidden: false }),
    requestAnimationFrame: (frame: () => void) => setTimeout(frame, 16),
    cancelAnimationFrame: clearTimeout,
    IntersectionObserver: class {
      disconnect = () => undefined;
    }
  });
  lost.add('gpu:a');
  draw();
  await pass(2_000);
  assert.match(shelf.problem, /Failed to fetch/);
  const store = {
    firstMs: () => 3_000_000,
    range: () => [0, 0],
    times: () => []
  } as unknown as Store;
  const viewport = new Viewport(() => 3_600_000, 60_000);
  const loop = new DrawLoop(store, viewport, shelf);
  viewport.show({ fromMs: 3_400_000, toMs: 3_500_000 });
  assert.equal(viewport.following, false);
  await pass(1_000);
  assert.equal(shelf.problem, '');
  loop.dispose();
});

test('a dashboard that is closed asks for nothing', async context => {
  const { pass, lost, connection, draw, shelf, requests } = twoGpus(context);
  lost.add('gpu:a').add('gpu:b');
  draw();
  await pass(2_000);
  shelf.dispose();
  connection.comeBack();
  await pass(3_600_000);
  assert.deepEqual([requests(), connection.isHeard()], [[1, 1], false]);
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
