import assert from 'node:assert/strict';
import { test } from 'node:test';
import { perfettoPart } from '../src/dashboard/reports/perfetto';
import { whose } from '../src/dashboard/reports/whose';
import { comparePart } from '../src/dashboard/reports/report_difference';
import type { CellReport } from '../src/shapes/protocol';
import { TraceFiles } from '../src/server/traces';
import type { FakeNode } from './fake_dom';
import { fakeDocument } from './fake_dom';

fakeDocument();

const never = () => Promise.reject(new Error('nobody asks'));

test('a file is asked for by its path, whatever is in it', async () => {
  const paths: string[] = [];
  const traces = new TraceFiles({
    read: path => {
      paths.push(path);
      return Promise.resolve(new Response('{"type": "cell_report"}'));
    }
  });
  await assert.rejects(traces.report('a b/ü&path=x.json'), /unknown form/);
  assert.deepEqual(paths, ['api/v1/trace?path=a+b%2F%C3%BC%26path%3Dx.json']);
  assert.deepEqual(traces.known, [], 'what was not understood is not known');
});

test('why the server has no report is told in its words', async () => {
  const refused = () =>
    Promise.reject(new Error('a damaged trace: truncated.'));
  const traces = new TraceFiles({ read: refused });
  await assert.rejects(traces.report('a.json'), /damaged trace/);
});

test('the report of a file is called by its name', () => {
  const report = { notebook: null, execution_count: null };
  const named = (file: string | null) =>
    whose({ ...report, file } as unknown as CellReport);
  assert.equal(named('runs/monday/t.json.gz'), 't.json.gz');
  assert.equal(named(null), 'a kernel');
});

test('where there is nothing to compare with nothing is offered', () => {
  const alone = { others: [], compare: never, chooseFile: null };
  const report = { id: 'a', title: 'a', started_ms: 0 } as CellReport;
  assert.equal(comparePart(report, alone), null);
  const offered = comparePart(report, { ...alone, chooseFile: never });
  const node = offered as unknown as FakeNode;
  assert.deepEqual(
    node.all('button').map(button => button.textContent),
    ['Swap', 'A trace file…']
  );
  assert.deepEqual(
    node.all('select').map(select => select.attributes.get('aria-label')),
    ['Before', 'After']
  );
});

test('Perfetto is a link that takes nothing along', () => {
  const node = perfettoPart(never) as unknown as FakeNode;
  const [link] = node.all('a');
  assert.equal(link?.attributes.get('href'), 'https://ui.perfetto.dev');
  assert.equal(link?.attributes.get('rel'), 'noopener noreferrer');
  assert.match(node.textContent, /This page sends nothing there/);
});

test('a report that is waited for says how far it is', async () => {
  const progress =
    '{"stage": "Reading the trace", "detail": "", "share": null}';
  let answer: (response: Response) => void = () => undefined;
  const traces = new TraceFiles({
    read: path =>
      path.startsWith('api/v1/trace/progress?path=a.json')
        ? Promise.resolve(new Response(progress))
        : new Promise(resolve => (answer = resolve))
  });
  const said = await new Promise(say => {
    const { signal } = new AbortController();
    traces.report('a.json', { signal, say }).catch(() => undefined);
  });
  assert.deepEqual(said, JSON.parse(progress));
  answer(new Response('{}'));
});
