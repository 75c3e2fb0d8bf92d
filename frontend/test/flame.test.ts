import assert from 'node:assert/strict';
import { test } from 'node:test';
import { layout, wholeNs } from '../src/dashboard/reports/flame_layout';
import type { CallNode } from '../src/shapes/protocol';

const call = (name: string, parent: number, host: number, gpu: number) => ({
  name,
  parent,
  calls: 1,
  host_ns: host,
  gpu_ns: gpu
});
const TREE: CallNode[] = [
  call('train', -1, 80, 40),
  call('forward', 0, 20, 30),
  call('backward', 0, 60, 10),
  call('load', -1, 20, 0)
];

test('a call lies below its caller, the longest first, as wide as its time', () => {
  assert.equal(wholeNs(TREE, 'host'), 100);
  assert.deepEqual(layout(TREE, 'host', null), [
    { index: 0, depth: 0, left: 0, width: 0.8 },
    { index: 2, depth: 1, left: 0, width: 0.6 },
    { index: 1, depth: 1, left: 0.6, width: 0.2 },
    { index: 3, depth: 0, left: 0.8, width: 0.2 }
  ]);
});

test('of the GPU, what launched nothing is not there', () => {
  const shown = layout(TREE, 'gpu', null).map(({ index }) => index);
  assert.deepEqual(shown, [0, 1, 2]);
});

test('a call that is zoomed into fills the width', () => {
  const [box] = layout(TREE, 'host', 2);
  assert.deepEqual(box, { index: 2, depth: 0, left: 0, width: 1 });
});

test('callers that are not there, or come later, end no page', () => {
  const odd = [call('one', 7, 10, 0), call('two', 1, 10, 0)];
  assert.equal(layout(odd, 'host', null).length, 2);
  assert.deepEqual(layout([], 'host', null), []);
});
