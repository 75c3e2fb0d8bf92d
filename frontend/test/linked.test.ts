/** Figures of one report move together, those of others stay. */

import assert from 'node:assert/strict';
import { test } from 'node:test';
import type { Figure } from '../src/core/bokeh';
import { LinkedRanges } from '../src/core/time_links';

class Range {
  readonly properties = { start: 'start', end: 'end' };
  start = 0;
  end = 100;
  private listener: () => void = () => undefined;

  constructor(readonly name: string | null) {}

  setv({ start, end }: { start: number; end: number }): void {
    this.start = start;
    this.end = end;
    // BokehJS tells of each property
    this.listener();
    this.listener();
  }

  on_change(_: readonly unknown[], listener: () => void): void {
    this.listener = listener;
  }
}

function figure(...ranges: Range[]): Figure {
  const children = ranges.map(range => ({ x_range: range }));
  return { clear: () => undefined, roots: [{ model: { children } }] };
}

test('figures over the same time move together', () => {
  const linked = new LinkedRanges();
  const [timeline, memory, other, roofline] = [
    new Range('cell a'),
    new Range('cell a'),
    new Range('cell b'),
    new Range(null)
  ];
  [timeline, memory, other, roofline].forEach(range =>
    linked.join(figure(range))
  );
  memory.setv({ start: 20, end: 30 });
  assert.deepEqual([timeline.start, timeline.end], [20, 30]);
  timeline.setv({ start: 1, end: 2 });
  assert.deepEqual([memory.start, memory.end], [1, 2]);
  assert.deepEqual([other.end, roofline.end], [100, 100]);
});

test('what is drawn later shows the same part, and what is gone stays', () => {
  const linked = new LinkedRanges();
  const [first, later] = [new Range('cell a'), new Range('cell a')];
  const gone = figure(first);
  linked.join(gone);
  first.setv({ start: 5, end: 6 });
  linked.join(figure(later, later));
  assert.deepEqual([later.start, later.end], [5, 6]);
  linked.leave(gone);
  later.setv({ start: 0, end: 50 });
  assert.deepEqual([first.start, first.end], [5, 6]);
});
