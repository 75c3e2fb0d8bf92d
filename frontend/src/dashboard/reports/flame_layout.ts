/** Where each call of a flame graph lies: below its caller, as wide as its time. */

import type { CallNode } from '../../shapes/protocol';

export type Clock = 'host' | 'gpu';

export interface Box {
  /** Position of the call in the tree. */
  readonly index: number;
  /** Rows below the top. */
  readonly depth: number;
  /** Of the whole width, 0 to 1. */
  readonly left: number;
  readonly width: number;
}

/** Narrower boxes can't be seen. */
const LEAST_WIDTH = 0.002;
const MOST_DEPTH = 200;

export function timeNs(node: CallNode, clock: Clock): number {
  return clock === 'host' ? node.host_ns : (node.gpu_ns ?? 0);
}

/** The sum of all calls that nothing calls. */
export function wholeNs(nodes: readonly CallNode[], clock: Clock): number {
  return nodes
    .filter(({ parent }) => parent < 0)
    .reduce((sum, node) => sum + timeNs(node, clock), 0);
}

/**
 * Lay a tree out, each level with its longest call first.
 * @param nodes - a caller comes before what it calls
 * @param clock - whose time is the width
 * @param root - the call that fills the width; null shows everything
 */
export function layout(
  nodes: readonly CallNode[],
  clock: Clock,
  root: number | null
): Box[] {
  const children = new Map<number, number[]>();
  nodes.forEach(({ parent }, index) => {
    // a tree of somebody else's making may name any number
    const caller = parent >= 0 && parent < index ? parent : -1;
    children.set(caller, [...(children.get(caller) ?? []), index]);
  });
  const boxes: Box[] = [];
  const place = (
    indices: readonly number[],
    depth: number,
    left: number,
    perNs: number
  ): void => {
    const longestFirst = [...indices].sort(
      (one, other) => time(other) - time(one)
    );
    let from = left;
    for (const index of longestFirst) {
      const width = time(index) * perNs;
      if (width >= LEAST_WIDTH && depth < MOST_DEPTH) {
        boxes.push({ index, depth, left: from, width });
        place(children.get(index) ?? [], depth + 1, from, perNs);
      }
      from += width;
    }
  };
  const time = (index: number): number => {
    const node = nodes[index];
    return node === undefined ? 0 : timeNs(node, clock);
  };
  const top = root === null ? (children.get(-1) ?? []) : [root];
  const whole = top.reduce((sum, index) => sum + time(index), 0);
  if (whole > 0) {
    place(top, 0, 0, 1 / whole);
  }
  return boxes;
}
