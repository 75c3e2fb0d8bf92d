import assert from 'node:assert/strict';
import { test } from 'node:test';
import type { ITranslator } from '@jupyterlab/translation';
import { TranslationManager } from '@jupyterlab/translation/lib/manager';
import { ending, word } from '../src/dashboard/parts/server_words';
import { phrase, setTranslator, trans } from '../src/core/translation';
import { verdictName } from '../src/core/words';

/** As a language pack has it, and JupyterLab reads it. */
const CATALOGUE = {
  '': { language: 'de-DE', plural_forms: 'nplurals=2; plural=(n != 1);' },
  '%1 of %2 cases': ['%1 von %2 Fällen'],
  '%1 minute': ['%1 Minute', '%1 Minuten'],
  Idle: ['Untätig'],
  interrupted: ['unterbrochen'],
  'not known without a trace': ['ohne Trace nicht bekannt']
};

/** JupyterLab's own translator, with what a language pack may have. */
async function german(): Promise<ITranslator> {
  // it asks the page for its language
  const html = { getAttribute: () => 'en' };
  Object.assign(globalThis, { document: { documentElement: html } });
  const answer = { data: { warpbook: CATALOGUE }, message: '' };
  const connector = { fetch: () => Promise.resolve(answer) };
  const manager = new TranslationManager('', '', undefined, connector as never);
  await manager.fetch('de_DE');
  return manager;
}

test('without JupyterLab words are English, with figures in their places', () => {
  setTranslator(null);
  assert.equal(trans.__('%1 of %2 cases', 3, 8), '3 of 8 cases');
  assert.equal(trans._n('%1 alert now.', '%1 alerts now.', 1), '1 alert now.');
  assert.equal(trans._n('%1 alert now.', '%1 alerts now.', 0), '0 alerts now.');
});

test('what a name brings is not looked at for places', async () => {
  for (const translator of [null, await german()]) {
    setTranslator(translator);
    assert.match(trans.__('%1 of %2 cases', '%2 <b>', 8), /%2 <b> .+ 8/);
  }
  setTranslator(null);
});

test('a chosen language is read when words are shown, tables too', async () => {
  assert.equal(verdictName('idle'), 'Idle');
  setTranslator(await german());
  assert.equal(trans._n('%1 minute', '%1 minutes', 1), '1 Minute');
  assert.equal(trans._n('%1 minute', '%1 minutes', 5), '5 Minuten');
  assert.equal(verdictName('idle'), 'Untätig');
  // a newer server's kind
  assert.equal(verdictName('melting'), 'melting');
  // what the server has worded, and how a cell ended
  assert.equal(word('not known without a trace'), 'ohne Trace nicht bekannt');
  assert.equal(word('torch, cuda:0'), 'torch, cuda:0');
  assert.equal(ending('interrupted'), 'unterbrochen');
  assert.equal(ending('melted'), 'melted');
  setTranslator(null);
  assert.equal(verdictName('idle'), 'Idle');
});

test('a phrase keeps its elements, in the order of the language', () => {
  const [first, second] = [{} as Node, {} as Node];
  setTranslator(null);
  const words = phrase('Run %1 once, then %2.', first, second);
  assert.deepEqual(words, ['Run ', first, ' once, then ', second, '.']);
});
