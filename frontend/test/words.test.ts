import assert from 'node:assert/strict';
import { test } from 'node:test';
import { isUnread, verdictName } from '../src/words';

test('only a device that nobody has read yet is passed over in silence', () => {
  const values: number[] = [];
  const unread = (why: string) =>
    isUnread({ state: 'unavailable', why, values });
  assert.ok(unread('Not read yet.'));
  assert.ok(unread(''));
  assert.ok(!unread('The driver is gone.'));
  assert.ok(!isUnread({ state: 'lost', why: '', values }));
});

test('a kind of verdict has a name, also one of a newer server', () => {
  assert.equal(verdictName('host_wait'), 'Waiting for the host');
  assert.equal(verdictName('thermally_bound'), 'thermally_bound');
  assert.equal(verdictName('constructor'), 'constructor');
});
