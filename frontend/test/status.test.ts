import assert from 'node:assert/strict';
import { test } from 'node:test';
import type { BokehLoader } from '../src/core/bokeh';
import { ContentView } from '../src/dashboard/parts/content';
import type { Controls } from '../src/dashboard/controls';
import { Header } from '../src/dashboard/header';
import { Notices } from '../src/dashboard/find/notices';
import { checklistPart } from '../src/dashboard/reports/report_checklist';
import { h } from '../src/core/dom';
import type { Stream } from '../src/core/page_stream';
import { keepLines, StatusLine } from '../src/core/status';
import { FakeNode, fakeDocument } from './fake_dom';
import { fakeTimers } from './fake_page';

fakeDocument();
Object.assign(globalThis, { Node: FakeNode });

const fake = (element: HTMLElement) => element as unknown as FakeNode;
const lines = (element: HTMLElement) =>
  fake(element).querySelectorAll('[role=status]');
const said = (element: HTMLElement) =>
  lines(element).map(line => line.textContent);

test('a checklist that is asked for says so on a line that stood empty', async context => {
  const pass = fakeTimers(context);
  let answer: (view: { groups: [] }) => void = () => undefined;
  const part = checklistPart(() => new Promise(resolve => (answer = resolve)));
  fake(part).fire('toggle');
  assert.deepEqual(said(part), ['']);
  const [line] = lines(part);
  await pass(200);
  assert.deepEqual(said(part), ['Asking the server…']);
  assert.equal(lines(part)[0], line);
  answer({ groups: [] });
  await pass(200);
  assert.deepEqual(said(part), []);
});

test('a card that is asked for says so on a line that stood empty', async context => {
  const pass = fakeTimers(context);
  const place = h('div');
  const view = new ContentView(place, {} as unknown as BokehLoader, () => []);
  void view.showLater('Receipt', () => new Promise(() => undefined));
  assert.deepEqual(said(place), ['']);
  await pass(200);
  assert.deepEqual(said(place), ['Asking the server…']);
});

test('a line of a part that is drawn anew says first what it said before', async context => {
  const pass = fakeTimers(context);
  const part = (...words: string[]) =>
    h('section', {}, ...words.map(text => h('p', { role: 'status' }, text)));
  const old = part('You are number 2.', '4 work.');
  const now = part('You are number 1.', '4 work.', 'Paused.');
  keepLines(old, now);
  assert.deepEqual(said(now), ['You are number 2.', '4 work.', '']);
  await pass(200);
  assert.deepEqual(said(now), ['You are number 1.', '4 work.', 'Paused.']);
});

test('a line that appears before another takes nothing from it', async context => {
  const pass = fakeTimers(context);
  const line = (text: string, id?: string) =>
    h('p', { role: 'status', ...(id !== undefined && { id }) }, text);
  const work = h('section', {}, line('4 work.'));
  const paused = h('section', {}, line('Paused.'), line('4 work.'));
  keepLines(work, paused);
  assert.deepEqual(said(paused), ['', '4 work.']);
  const place = h('section', {}, line('You are number 2.', 'place'));
  const noted = h(
    'section',
    {},
    line('A GPU was lost.', 'note'),
    line('You are number 1.', 'place')
  );
  keepLines(place, noted);
  assert.deepEqual(said(noted), ['', 'You are number 2.']);
  await pass(200);
  assert.deepEqual(said(paused), ['Paused.', '4 work.']);
  assert.deepEqual(said(noted), ['A GPU was lost.', 'You are number 1.']);
});

test('what a line says again does not keep it from saying it', async context => {
  const pass = fakeTimers(context);
  const line = new StatusLine();
  for (let atMs = 0; atMs < 200; atMs += 50) {
    line.say('This server sees no GPU.');
    await pass(50);
  }
  assert.equal(line.node.textContent, 'This server sees no GPU.');
});

/** A server without GPUs of which nothing is to be told. */
function quiet() {
  const statements = {
    keeping: null as object | null,
    events: () => [],
    postMortems: () => []
  };
  const stream = {
    connection: { status: { phase: 'open', why: '' }, retry: () => undefined },
    store: { absences: [], devices: [], replay: null, label: null },
    statements
  } as unknown as Stream;
  return { stream, statements };
}

test('why charts lack something is said on a line that was there before', () => {
  const { stream } = quiet();
  const controls = { node: h('div'), badge: h('span') } as unknown as Controls;
  const header = new Header(stream, null, controls);
  const standing = lines(header.node).filter(
    line => !line.attributes.has('hidden')
  );
  header.setProblem('That is too old.');
  assert.ok(standing.some(line => line.textContent === 'That is too old.'));
  header.setProblem('');
  assert.deepEqual(
    lines(header.node).map(line => line.firstChild),
    [null, null]
  );
});

test('the first notice comes into a log that was there before', () => {
  const { stream, statements } = quiet();
  const notices = new Notices(stream, () => undefined);
  assert.equal(fake(notices.node).attributes.has('hidden'), false);
  assert.equal(fake(notices.node).firstChild, null);
  statements.keeping = { state: 'stopped', message: 'The disk is full.' };
  notices.update();
  assert.match(fake(notices.node).textContent, /The disk is full\./);
});
