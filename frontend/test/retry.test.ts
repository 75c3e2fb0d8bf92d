import assert from 'node:assert/strict';
import type { TestContext } from 'node:test';
import { test } from 'node:test';
import { Retry } from '../src/retry';
import { fakeConnection, fakeTimers } from './fake_page';

/** A request that is made again after 10 s at first, and after 40 s at most. */
function lostRequest(context: TestContext) {
  const pass = fakeTimers(context);
  const connection = fakeConnection();
  let attempts = 0;
  const again = () => {
    attempts += 1;
    retry.failed();
  };
  const retry = new Retry(connection, again, 10_000, 40_000);
  return { pass, connection, retry, attempts: () => attempts };
}

test('what fails is asked for less and less, up to a limit', async context => {
  const { pass, retry, attempts } = lostRequest(context);
  retry.failed();
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
  retry.succeeded();
  await pass(40_000);
  assert.equal(attempts(), 6);
  await pass(10_000);
  assert.equal(attempts(), 7);
});

test('many failures at once lead to one attempt', async context => {
  const { pass, retry, attempts } = lostRequest(context);
  for (let request = 0; request < 5; request += 1) {
    retry.failed();
  }
  await pass(10_000);
  assert.equal(attempts(), 1);
});

test('what waits is asked for at once when the connection returns', async context => {
  const { pass, connection, retry, attempts } = lostRequest(context);
  connection.comeBack();
  assert.equal(attempts(), 0);
  retry.failed();
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
  retry.failed();
  retry.cancel();
  await pass(60_000);
  connection.comeBack();
  assert.equal(attempts(), 0);
  retry.failed();
  retry.dispose();
  assert.equal(connection.isHeard(), false);
  // an answer on its way may fail later
  retry.failed();
  await pass(60_000);
  assert.equal(attempts(), 0);
});
