import assert from 'node:assert/strict';
import type { TestContext } from 'node:test';
import { test } from 'node:test';
import type { BokehLoader } from '../src/core/bokeh';
import { LinkedRanges } from '../src/core/time_links';
import type { CellReport } from '../src/shapes/protocol';
import { HttpError } from '../src/core/reading';
import { TimelineView } from '../src/timeline/view';
import { FakeNode, fakeDocument } from './fake_dom';
import { fakeConnection, fakeTimers } from './fake_page';

const REPORT = {
  id: 'r-1',
  live: null,
  timeline_events: 10,
  profile: { wall_ns: 100_000, lanes: [] }
} as unknown as CellReport;

type Request = 'window' | 'whole';

/** A run of 100 µs; what is in `lost` fails, each with `failure`. */
function timeline(context: TestContext, first: Request[] = []) {
  const pass = fakeTimers(context);
  fakeDocument();
  const body = { dataset: { jpThemeLight: 'true' } };
  Object.assign(document, { body });
  Object.assign(window, {
    requestAnimationFrame: (frame: () => void) => setTimeout(frame, 16),
    cancelAnimationFrame: clearTimeout,
    devicePixelRatio: 1
  });
  const ResizeObserver = class {
    observe(): void {}
    disconnect(): void {}
  };
  Object.assign(globalThis, { ResizeObserver });
  const lost = new Set(first);
  const state = {
    failure: new Error('Failed to fetch'),
    requests: 0,
    lastNs: 100_000
  };
  const read = async (path: string) => {
    state.requests += 1;
    await Promise.resolve();
    const url = new URL(path, 'http://server/');
    const number = (name: string) => Number(url.searchParams.get(name));
    const isWhole = number('steps') === 600;
    if (lost.has(isWhole ? 'whole' : 'window')) {
      throw state.failure;
    }
    return Response.json({
      from_ns: number('from_ns'),
      to_ns: number('to_ns'),
      first_ns: 0,
      last_ns: state.lastNs,
      step_ns: 1,
      names: {},
      rows: [],
      bars: [],
      omitted: 0
    });
  };
  const bokeh = {
    connection: { ...fakeConnection(), read },
    linked: new LinkedRanges(),
    show: () => new Promise(() => undefined)
  };
  const view = new TimelineView(
    bokeh as unknown as BokehLoader,
    REPORT,
    () => null
  );
  const node = view.node as unknown as FakeNode;
  return { pass, lost, state, bokeh, node };
}

test('a timeline whose first request was lost is drawn when it comes', async context => {
  const { pass, lost, node } = timeline(context, ['window']);
  await pass(2_000);
  assert.match(node.textContent, /Only the longest .* Trying again\./);
  lost.clear();
  await pass(4_000);
  assert.equal(node.all('canvas').length, 2);
  assert.doesNotMatch(node.textContent, /Only the longest/);
});

test('a report that is not kept any more is said to be gone, once', async context => {
  const { pass, state, bokeh, node } = timeline(context, ['window']);
  state.failure = new HttpError(404, 'No such report is kept.');
  await pass(600_000);
  bokeh.connection.comeBack();
  await pass(2_000);
  assert.equal(state.requests, 1);
  assert.match(node.textContent, /No such report is kept\.$/);
});

test('a strip of the whole run that is lost costs the timeline nothing', async context => {
  const { pass, lost, state, node } = timeline(context, ['whole']);
  // more than a screen on either side of the cell
  state.lastNs = 1_000_000;
  await pass(2_000);
  const [strip] = node
    .all('div')
    .filter(({ attributes }) => attributes.get('class') === 'wb-minimap');
  assert.equal(strip?.hidden, true);
  assert.match(node.textContent, /strip of the whole run .* Trying again\./);
  lost.clear();
  await pass(4_000);
  assert.equal(strip.hidden, false);
});
