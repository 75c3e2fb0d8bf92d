import assert from 'node:assert/strict';
import { readFileSync } from 'node:fs';
import { test } from 'node:test';
import { labCard } from '../src/labs/card';
import { cellText } from '../src/labs/card_cells';
import { isCard } from '../src/shapes/labs';
import type { Card, CardStatus, Part } from '../src/shapes/protocol';
import type { FakeNode } from './fake_dom';
import { fakeDocument } from './fake_dom';

/** The card that the tests of notebook and terminal draw, too; Python keeps it. */
const RICH = JSON.parse(
  readFileSync('../tests/data/cards/rich.json', 'utf-8')
) as Card;

fakeDocument();

function drawn(card: Card): FakeNode {
  return labCard(card) as unknown as FakeNode;
}

/** The words of a part that are no figures. */
function wordsOf(part: Part): readonly string[] {
  switch (part.type) {
    case 'paragraph':
      return [part.text];
    case 'location':
      return [part.code];
    case 'log':
      return part.lines;
    case 'table':
      return part.heads;
    case 'facts':
      return part.facts.map(({ label }) => label);
    case 'timeline':
      return part.lanes.map(({ name }) => name);
  }
}

/** No-break spaces as people see them. */
const seen = (value: string) => value.replaceAll('\u00a0', ' ');
const safe = (value: string) => value.replace(/\p{C}/gu, '?');

test('a rich card has every word, none of it markup or control', () => {
  assert.ok(isCard(RICH));
  const root = drawn(RICH);
  const text = seen(root.textContent);
  assert.deepEqual(root.all('script'), []);
  assert.ok(!['\u001b', '\u0007', '\u202e'].some(c => text.includes(c)));
  for (const { title, parts } of RICH.sections) {
    assert.ok(text.includes(safe(title)), title);
    for (const part of parts) {
      for (const words of wordsOf(part)) {
        assert.ok(text.includes(safe(words)), words);
      }
    }
  }
});

test('figures are those that notebook and terminal show', () => {
  const text = seen(drawn(RICH).textContent);
  for (const words of [
    '✗ vector-add: failed. 3 of 4 cases passed.',
    '   2 |     sum += 1; // <script>',
    '1.250× (95 % CI 1.246× to 1.254×, 80 pairs); required: 1.200×',
    '80 timed calls, 1 also on the CPU',
    '52.1 µs',
    '4.30 TB/s',
    '52.0 TFLOP/s',
    '1.67 ms, 107× the ideal time',
    '25 launches, 1 host synchronization',
    '40 B to the GPU',
    'and 60 more lines'
  ]) {
    assert.ok(text.includes(words), words);
  }
});

test('sections fold as they are told, and a timeline has a bar for each', () => {
  const root = drawn(RICH);
  const folds = root.all('details');
  const open = folds.filter(fold => fold.attributes.has('open'));
  assert.equal(
    open.length,
    RICH.sections.filter(({ fold }) => fold === 'open').length
  );
  assert.equal(
    folds.length,
    RICH.sections.filter(({ fold }) => fold !== '').length
  );
  const titles = root.all('rect').map(rect => seen(rect.textContent));
  assert.equal(titles.length, 3);
  assert.ok(titles.includes('host synchronization, 1.53 ms, line 9'));
});

test('a status is shown in words and kept for its colour', () => {
  const statuses: [CardStatus, string][] = [
    ['passed', '✓ lab: passed. m'],
    ['unsupported', '? lab: unsupported. m'],
    ['timed out', '✗ lab: timed out. m']
  ];
  for (const [status, words] of statuses) {
    const root = drawn({
      title: 'lab',
      status,
      label: status,
      message: 'm',
      sections: []
    });
    const [verdict] = root.all('p');
    assert.equal(verdict?.textContent, words);
    assert.equal(verdict?.attributes.get('data-status'), status);
  }
  assert.equal(
    cellText({ type: 'status', status: 'unsupported' }),
    '? unsupported'
  );
});

test('what is no card is refused', () => {
  const part = { type: 'constructor', text: 'x' };
  const section = { title: '', fold: '', parts: [part] };
  assert.ok(!isCard({ ...RICH, sections: [section] }));
  assert.ok(!isCard({ ...RICH, status: 'fine' }));
  assert.ok(!isCard({ ...RICH, sections: [{ ...section, parts: [null] }] }));
  assert.ok(isCard({ ...RICH, sections: [] }));
});
