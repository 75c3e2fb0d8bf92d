import assert from 'node:assert/strict';
import { test } from 'node:test';
import { checklistNodes } from '../src/dashboard/reports/report_checklist';
import {
  causeNodes,
  changeNodes,
  editedNodes,
  trialNodes,
  verdictNodes
} from '../src/dashboard/reports/report_parts';
import { count, duration, share } from '../src/core/format';
import type { ReportView } from '../src/shapes/protocol';
import type { FakeNode } from './fake_dom';
import { fakeDocument } from './fake_dom';

fakeDocument();

/** No-break spaces as people see them. */
const seen = (value: string) => value.replaceAll('\u00a0', ' ');

test('a little is not nothing', () => {
  const words = [0, 1e-6, 0.003, 0.5, 1.39, null].map(ratio =>
    seen(share(ratio))
  );
  assert.deepEqual(words, ['0 %', '< 0.1 %', '0.3 %', '50 %', '139 %', '–']);
  assert.equal(seen(duration(0.00093)), '0.93 µs');
  assert.equal(seen(duration(0)), '0 ms');
  assert.equal(count(1234567), '1,234,567');
});

test('a cause says what to try, what it gives, and who teaches it', () => {
  const cause = {
    id: 'cause-0',
    kind: 'launch-bound',
    label: 'launch-bound',
    share: '90 %',
    share_ratio: 0.9,
    evidence: '800 launches.',
    advice: 'Launch less. Without this cause: 1.50 ms at best.',
    lab: 'cuda-graphs',
    changes: [],
    rows: []
  } as const;
  const [, rows] = causeNodes({
    causes: [cause],
    meanings: {}
  }) as unknown as FakeNode[];
  assert.equal(
    seen(rows?.textContent ?? ''),
    '90 %launch-bound 800 launches. Launch less. ' +
      'Without this cause: 1.50 ms at best. Lab: cuda-graphs.'
  );
  assert.match(rows?.textContent ?? '', /^90\u00a0%.* 1\.50\u00a0ms/);
  assert.deepEqual(causeNodes({ causes: [] }), []);
});

test('a verdict has its cause, its change and a bar of the time', () => {
  const view = {
    headline: {
      kind: 'mixed',
      label: 'mixed',
      cause: 'No one cause.',
      change: 'Use TF32.'
    },
    time: {
      title: 'Shares are of 3.1 ms.',
      parts: [
        {
          kind: 'memory-bound',
          label: 'memory-bound 70 %',
          ratio: 0.7,
          causes: ['cause-0']
        },
        { kind: null, label: 'not explained 30 %', ratio: 0.3, causes: [] }
      ]
    },
    causes: [{ id: 'cause-0', label: 'memory-bound' }],
    meanings: { mixed: 'None leads.', 'memory-bound': 'Memory is waited for.' },
    warnings: ['Too short.']
  } as unknown as ReportView;
  const nodes = verdictNodes(view) as unknown as FakeNode[];
  const texts = nodes.map(({ textContent }) => seen(textContent));
  assert.deepEqual(texts, [
    'mixed No one cause.',
    'Use TF32.',
    'Shares are of 3.1 ms.memory-bound 70 %not explained 30 %',
    'Too short.'
  ]);
  const titles = (node?: FakeNode) =>
    node?.children.map(({ attributes }) => attributes.get('title'));
  assert.equal(titles(nodes[0])?.[0], 'None leads.');
  assert.deepEqual(titles(nodes[2]?.children.at(-1)), [
    'Memory is waited for.',
    undefined
  ]);
});

test('a change on copies is told by its name and in words', () => {
  const trial = { name: 'tf32', outcome: 'refused', sentence: 'Not tried.' };
  const texts = trialNodes({ trials: [trial] });
  const [, rows] = texts as unknown as FakeNode[];
  assert.equal(rows?.textContent, 'tf32 Not tried.');
  assert.deepEqual(trialNodes({ trials: [] }), []);
});

test('an edited cell is shown with its lines, its button and its table', () => {
  const edited = { sentence: 'Better.', diff: '<b>-x</b>', table: null };
  const button = { textContent: 'Apply fuse' } as unknown as Node;
  const texts = editedNodes({ edited }, [button]) as unknown as FakeNode[];
  assert.deepEqual(
    texts.map(({ textContent }) => textContent),
    ['The edited cell', 'Better.', '<b>-x</b>', 'Apply fuse']
  );
  assert.deepEqual(editedNodes({ edited: null }, []), []);
});

test('a change is shown with its time, its line and its edit', () => {
  const change = {
    id: 'change-0',
    name: 'tf32',
    heading: 'tf32: Let products use TF32 (line 3)',
    evidence: 'Products are float32.',
    sentence: 'About 1.76 ms instead of 11.0 ms.',
    diff: '<b>code</b>',
    lab: null,
    acts_on: 'Acts on compute-bound 76 %.',
    causes: [],
    rows: []
  };
  const texts = changeNodes({ changes: [change] });
  const [, rows] = texts as unknown as FakeNode[];
  assert.equal(
    seen(rows?.textContent ?? ''),
    'tf32: Let products use TF32 (line 3) About 1.76 ms instead of 11.0 ms. ' +
      'Products are float32. Acts on compute-bound 76 %.<b>code</b>'
  );
  assert.deepEqual(changeNodes({ changes: [] }), []);
});

test('a checklist tells what is missing with its gain and its lab', () => {
  const item = (question: string, lab: string | null = null) => ({
    name: 'n',
    question,
    lab
  });
  const [missing, unknown, rest] = checklistNodes({
    groups: [
      {
        answer: 'no',
        title: 'No: not used, though it applies',
        entries: [
          {
            items: [item('Fused?', 'fused-norm'), item('<b>Aligned?</b>')],
            evidence: 'n'.repeat(2000),
            advice: 'Fuse. About 3.07 ms instead of 14.8 ms.'
          }
        ]
      },
      {
        answer: 'unknown',
        title: 'Unknown',
        entries: [
          { items: [item('Pinned?')], evidence: 'None.', advice: 'Record.' }
        ]
      },
      {
        answer: 'not applicable',
        title: 'Not applicable',
        entries: [
          { items: [item('Eval?')], evidence: 'It trains.', advice: '' }
        ]
      }
    ]
  }) as unknown as FakeNode[];
  // questions with one evidence are counted, and what is long is cut
  const words = seen(missing?.textContent ?? '');
  assert.match(
    words,
    /^No: not used, though it applies \(2\)Fused\? Lab: fused-/
  );
  assert.match(
    words,
    /<b>Aligned\?<\/b>Fuse. About 3.07 ms instead of 14.8 ms/
  );
  assert.ok(words.length < 1000 && words.endsWith('n…'));
  assert.equal(missing?.all('button')[0]?.textContent, 'fused-norm');
  assert.equal(unknown?.textContent, 'Unknown (1)Pinned?Record.None.');
  assert.equal(rest?.tag, 'details');
  assert.equal(rest?.attributes.has('open'), false);
});
