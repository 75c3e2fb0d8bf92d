import assert from 'node:assert/strict';
import { test } from 'node:test';
import { gpusAndInstances } from '../src/core/instances';
import type { Device } from '../src/shapes/protocol';
import {
  deviceHeading,
  deviceLabel,
  isUnread,
  verdictName
} from '../src/core/words';
import { GPU } from './fixtures';

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
  assert.equal(verdictName('host-bound'), 'Host-bound');
  assert.equal(
    verdictName('compute-bound', 'tensor cores'),
    'Compute-bound: tensor cores'
  );
  assert.equal(verdictName('thermally_bound'), 'thermally_bound');
  assert.equal(verdictName('constructor'), 'constructor');
});

test('an instance of a GPU is named as %gpu names it', () => {
  const gpu = { ...GPU, index: 3 };
  const instance: Device = {
    ...GPU,
    id: 'mig:a',
    kind: 'mig',
    name: 'NVIDIA H200 MIG 1g.18gb',
    index: null,
    facts: { parent: gpu.id, gpu_instance_id: 7 }
  };
  const devices = [instance, { ...GPU, id: 'gpu:b', index: 4 }, gpu];
  assert.equal(deviceLabel(gpu, devices), 'GPU 3');
  assert.equal(deviceLabel(instance, devices), 'MIG 3:7');
  assert.equal(deviceHeading(instance, devices), 'MIG 3:7 · 1g.18gb');
  assert.equal(deviceLabel(instance, [instance]), 'MIG ?:7');
  const [one, two] = [0, 1].map(id => ({
    ...instance,
    id: `mig:${id}`,
    facts: { ...instance.facts, compute_instance_id: id }
  }));
  assert.equal(deviceLabel(one, [gpu, one, two]), 'MIG 3:7/0');
  assert.equal(deviceLabel(two, [gpu, one, two]), 'MIG 3:7/1');
  assert.deepEqual(
    gpusAndInstances(devices).map(({ id }) => id),
    ['gpu:b', 'gpu:a', 'mig:a']
  );
});
