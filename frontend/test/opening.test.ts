import assert from 'node:assert/strict';
import type { TestContext } from 'node:test';
import { test } from 'node:test';
import type { BokehLoader } from '../src/core/bokeh';
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

/** A model of BokehJS that keeps what is written into it. */
function model(fields: object = {}) {
  const made = {
    properties: {},
    on_change: () => undefined,
    on_event: () => undefined,
    setv: (values: object) => Object.assign(made, values),
    ...fields
  };
  return made;
}

/** A figure of the timeline. */
function figure() {
  return model({
    x_range: model({ start: 0, end: 0.1 }),
    y_range: model(),
    document: { get_model_by_name: () => model({ palette: [] }) }
  });
}

type Request = 'window' | 'whole' | 'figure';

/** A run of 100 µs; what is in `lost` fails, each with `failure`. */
function timeline(context: TestContext, first: Request[] = []) {
  const pass = fakeTimers(context);
  fakeDocument();
  const body = { dataset: { jpThemeLight: 'true' }, append: () => undefined };
  Object.assign(document, { body });
  Object.assign(window, {
    requestAnimationFrame: (frame: () => void) => setTimeout(frame, 16),
    cancelAnimationFrame: clearTimeout,
    devicePixelRatio: 1
  });
  Object.assign(globalThis, { getComputedStyle: () => ({}) });
  const lost = new Set(first);
  const state = {
    failure: new Error('Failed to fetch'),
    requests: 0,
    drawn: [] as string[],
    standing: 0,
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
    load: () => Promise.resolve(),
    item: (path: string) =>
      lost.has('figure')
        ? Promise.reject(state.failure)
        : Promise.resolve(path.split('theme=')[1]),
    draw: (theme: string) => {
      state.drawn.push(theme);
      state.standing += 1;
      return Promise.resolve({
        roots: [{ model: figure() }],
        clear: () => (state.standing -= 1)
      });
    },
    show: () => new Promise(() => undefined)
  };
  const view = new TimelineView(bokeh as unknown as BokehLoader, REPORT);
  const node = view.node as unknown as FakeNode;
  return { pass, lost, state, bokeh, body, view, node };
}

test('a timeline whose first request was lost is drawn when it comes', async context => {
  const { pass, lost, state, node } = timeline(context, ['window']);
  await pass(2_000);
  assert.match(node.textContent, /Only the longest .* Trying again\./);
  lost.clear();
  await pass(4_000);
  assert.deepEqual(state.drawn, ['light']);
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

test('a timeline stays where its figure in another theme is lost', async context => {
  const { pass, lost, state, body, view, node } = timeline(context);
  await pass(2_000);
  body.dataset.jpThemeLight = 'false';
  lost.add('figure');
  view.restyle();
  await pass(2_000);
  assert.deepEqual([state.drawn, state.standing], [['light'], 1]);
  assert.doesNotMatch(node.textContent, /Only the longest/);
  lost.clear();
  await pass(4_000);
  assert.deepEqual([state.drawn, state.standing], [['light', 'dark'], 1]);
});

test('a theme that changes while the figure comes holds in the end', async context => {
  const { pass, state, body, view } = timeline(context);
  body.dataset.jpThemeLight = 'false';
  view.restyle();
  await pass(2_000);
  assert.deepEqual([state.drawn.at(-1), state.standing], ['dark', 1]);
});

test('a strip of the whole run that is lost costs the timeline nothing', async context => {
  const { pass, lost, state, node } = timeline(context, ['whole']);
  // more than a screen on either side of the cell
  state.lastNs = 1_000_000;
  await pass(2_000);
  const [strip] = node
    .all('div')
    .filter(({ attributes }) => attributes.get('class') === 'wb-minimap');
  assert.deepEqual([state.standing, strip?.hidden], [1, true]);
  assert.match(node.textContent, /strip of the whole run .* Trying again\./);
  lost.clear();
  await pass(4_000);
  assert.deepEqual([state.standing, strip?.hidden], [1, false]);
});

test('what stands behind what is drawn instead is gone', async context => {
  const { pass, state, bokeh, view, node } = timeline(context);
  await pass(2_000);
  bokeh.draw = () => Promise.reject(new Error('No canvas.'));
  view.restyle();
  await pass(2_000);
  assert.match(node.textContent, /Only the longest .* No canvas\./);
  assert.equal(state.standing, 0);
});
