import assert from 'node:assert/strict';
import type { TestContext } from 'node:test';
import { test } from 'node:test';
import { HttpError, isFinal, UnknownForm } from '../src/core/reading';
import { Retry } from '../src/core/retry';
import { fakeConnection, fakeTimers } from './fake_page';

const LOST = new Error('Failed to fetch');

/** A request that is made again after 10 s at first, and after 40 s at most. */
function lostRequest(context: TestContext) {
  const pass = fakeTimers(context);
  const connection = fakeConnection();
  let attempts = 0;
  const again = () => {
    attempts += 1;
    retry.failed(LOST);
  };
  const retry = new Retry(connection, again, 10_000, 40_000);
  return { pass, connection, retry, attempts: () => attempts };
}

test('what fails is asked for less and less, up to a limit', async context => {
  const { pass, retry, attempts } = lostRequest(context);
  retry.failed(LOST);
  await pass(9_000);
  assert.equal(attempts(), 0);
  await pass(1_000);
  assert.equal(attempts(), 1);
  // at 30, 70, 110, 150 s
  await pass(60_000);
  assert.equal(attempts(), 3);
  await pass(80_000);
  assert.equal(attempts(), 5);
  // an answer makes it soon again, of what fails from then on
  retry.cancel();
  retry.succeeded();
  retry.failed(LOST);
  await pass(10_000);
  assert.equal(attempts(), 6);
  await pass(20_000);
  assert.equal(attempts(), 7);
});

test('many failures at once lead to one attempt', async context => {
  const { pass, retry, attempts } = lostRequest(context);
  for (let request = 0; request < 5; request += 1) {
    retry.failed(LOST);
  }
  await pass(10_000);
  assert.equal(attempts(), 1);
});

test('what waits is asked for at once when the connection returns', async context => {
  const { pass, connection, retry, attempts } = lostRequest(context);
  connection.comeBack();
  assert.equal(attempts(), 0);
  retry.failed(LOST);
  await pass(70_000);
  assert.equal(attempts(), 3);
  connection.comeBack();
  assert.equal(attempts(), 4);
  // and soon again, should the server not be ready yet
  await pass(10_000);
  assert.equal(attempts(), 5);
});

test('what is disposed of, or not wanted any more, asks for nothing', async context => {
  const { pass, connection, retry, attempts } = lostRequest(context);
  retry.failed(LOST);
  retry.cancel();
  await pass(60_000);
  connection.comeBack();
  assert.equal(attempts(), 0);
  retry.failed(LOST);
  retry.dispose();
  assert.equal(connection.isHeard(), false);
  // an answer on its way may fail later
  retry.failed(LOST);
  await pass(60_000);
  assert.equal(attempts(), 0);
});

test('what a person asks for meanwhile makes no wait longer', async context => {
  const { pass, retry, attempts } = lostRequest(context);
  for (let drag = 0; drag < 20; drag += 1) {
    retry.cancel();
    retry.failed(LOST);
  }
  await pass(10_000);
  assert.equal(attempts(), 1);
});

test('an attempt that is under way when the stream returns is the last of its row', async context => {
  const pass = fakeTimers(context);
  const connection = fakeConnection();
  let attempts = 0;
  const retry = new Retry(connection, () => (attempts += 1), 10_000, 40_000);
  for (const waitMs of [10_000, 20_000, 40_000]) {
    retry.failed(LOST);
    await pass(waitMs);
  }
  assert.equal(attempts, 3);
  connection.comeBack();
  // nothing waited, so nothing is asked for twice
  assert.equal(attempts, 3);
  retry.failed(LOST);
  await pass(10_000);
  assert.equal(attempts, 4);
});

test('what the server refuses for good is not asked for again', async context => {
  const { pass, connection, retry, attempts } = lostRequest(context);
  const gone = new HttpError(404, 'No such report is kept.');
  assert.equal(retry.failed(gone), false);
  assert.equal(retry.words(gone), 'No such report is kept.');
  await pass(100_000);
  connection.comeBack();
  assert.equal(attempts(), 0);
  assert.equal(
    retry.words(new HttpError(503, 'It starts.')),
    'It starts. Trying again.'
  );
  await pass(10_000);
  assert.equal(attempts(), 1);
});

test('a status says whether the same request fails again', () => {
  const final = (status: number) => isFinal(new HttpError(status, ''));
  assert.deepEqual([400, 404, 413].map(final), [true, true, true]);
  // a log-in, a server that starts, too many requests, a proxy, an error
  assert.ok(![403, 424, 429, 502, 500].some(final));
  assert.ok(isFinal(new UnknownForm()));
  assert.ok(!isFinal(new TypeError('Failed to fetch')));
});
