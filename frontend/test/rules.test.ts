import assert from 'node:assert/strict';
import { test } from 'node:test';
import type { Draft } from '../src/dashboard/rules/rule_draft';
import {
  draftOf,
  metricsOf,
  NEW,
  problemsOf,
  settingsOf
} from '../src/dashboard/rules/rule_draft';
import { GPU } from './fixtures';

const METRICS = metricsOf([GPU, GPU]);
const GOOD: Draft = {
  ...NEW,
  name: 'lazy',
  metric: 'sm_active_ratio',
  side: 'below',
  threshold: '7',
  clear: '12,5',
  title: ' Lazy <b> '
};

test('what can be watched is listed once, whoever has it', () => {
  assert.deepEqual(
    METRICS.map(({ name }) => name),
    ['power_watts', 'sm_active_ratio']
  );
});

test('a rule is saved in the metric\u2019s unit and comes back as it was typed', () => {
  assert.deepEqual(problemsOf(GOOD, []), {});
  const settings = settingsOf(GOOD, true, METRICS);
  assert.equal(settings['below'], 0.07);
  assert.equal(settings['clear'], 0.125);
  assert.equal(settings['above'], null);
  assert.equal(settings['title'], 'Lazy <b>');
  assert.equal(settings['enabled'], null);
  assert.equal(settingsOf(GOOD, false, METRICS)['enabled'], false);
  const rule = { name: 'lazy', is_own: true, settings, written: [] };
  const draft = draftOf(rule, METRICS);
  assert.deepEqual(
    [draft.side, draft.threshold, draft.clear],
    ['below', '7', '12.5']
  );
});

test('what can not be saved says what to write', () => {
  const problem = (change: Partial<Draft>) =>
    problemsOf({ ...GOOD, ...change }, ['hot']);
  assert.match(problem({ name: 'a b' }).name ?? '', /letters, digits/);
  assert.match(problem({ name: 'hot' }).name ?? '', /another name/);
  assert.equal(problem({ threshold: 'much' }).threshold, 'Write a number.');
  assert.match(problem({ clear: '1' }).clear ?? '', /not below the threshold/);
  assert.match(problem({ title: ' ' }).title ?? '', /called/);
  assert.match(problem({ for_s: '-1' }).for_s ?? '', /from 0 to 86400/);
  assert.match(problem({ clear_s: '' }).clear_s ?? '', /from 0 to 86400/);
});
