import assert from 'node:assert/strict';
import { test } from 'node:test';
import { ALL, fits, languageName } from '../src/labs/filters';
import { unrunLabs, unrunWords } from '../src/labs/unrun';
import { blocks, marked } from '../src/labs/words';
import type { LabEntry } from '../src/shapes/protocol';
import type { FakeNode } from './fake_dom';
import { fakeDocument } from './fake_dom';

fakeDocument();

const LAB: LabEntry = {
  id: 'vector-add',
  number: 2,
  title: 'Vector add',
  track: 'kernels',
  language: 'cuda',
  minutes: 30,
  difficulty: 'easy',
  goal: '',
  after: [],
  needs: [],
  can_check: true,
  why: '',
  progress: { state: 'tried', attempts: 1, hints: 0, right: 1, of: 3 }
};

test('labs are chosen by track, language, length and state', () => {
  assert.ok(fits(LAB, ALL));
  const chosen: [Partial<typeof ALL>, boolean][] = [
    [{ track: 'kernels', language: 'cuda', minutes: '30' }, true],
    [{ track: 'memory' }, false],
    [{ language: 'triton' }, false],
    [{ minutes: '45' }, true],
    [{ state: 'open' }, true],
    [{ state: 'new' }, false],
    [{ state: 'passed' }, false]
  ];
  for (const [filter, isShown] of chosen) {
    assert.equal(fits(LAB, { ...ALL, ...filter }), isShown);
  }
  assert.ok(!fits({ ...LAB, minutes: 31 }, { ...ALL, minutes: '30' }));
  const unknown = { ...LAB, progress: null };
  assert.ok(fits(unknown, ALL));
  assert.ok(!fits(unknown, { ...ALL, state: 'new' }));
  assert.equal(languageName('cuda'), 'CUDA C++');
});

test('what is between backticks is code, and nothing is markup', () => {
  const nodes = marked(
    'use `x[i]` and `<b>`, not ` alone\u0007'
  ) as unknown as (FakeNode | string)[];
  const texts = nodes.map(node =>
    typeof node === 'string' ? node : `${node.tag}:${node.textContent}`
  );
  assert.deepEqual(texts, [
    'use ',
    'code:x[i]',
    ' and ',
    'code:<b>',
    ', not ` alone?'
  ]);
});

test('texts of labs have paragraphs, and code as it is', () => {
  const nodes = blocks('Take\nthis:\n\n```python\nx = 1\n  y\n```\n\nAnd `z`.');
  const texts = (nodes as unknown as FakeNode[]).map(
    node => `${node.tag}:${node.textContent}`
  );
  assert.deepEqual(texts, ['p:Take this:', 'pre:x = 1\n  y', 'p:And z.']);
});

test('a cell that grades a file names the cells that are newer', () => {
  const cells = [
    { source: '%%lab vector-add\nfloat x;', isDirty: true },
    { source: '%%lab matmul --no-check\n', isDirty: false },
    { source: 'x = 1', isDirty: true }
  ];
  for (const code of ['lab.check()', 'card = mine.submit()', 'lab.run(2)']) {
    assert.deepEqual(unrunLabs(code, cells), ['vector-add']);
  }
  for (const code of [
    'lab.hint()',
    '%%lab matmul\ncheck()',
    'subprocess.run()'
  ]) {
    assert.deepEqual(unrunLabs(code, cells), []);
  }
  assert.deepEqual(unrunLabs('lab.check()', cells.slice(1)), []);
  assert.ok(unrunWords(['vector-add']).includes('%%lab vector-add'));
});
