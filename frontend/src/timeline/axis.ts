/** Ticks of a time axis, with as many digits as tell them apart. */

import type { Frame } from './frame';

export interface Tick {
  readonly x: number;
  readonly text: string;
}

const LEAST_APART = 110;
const STEPS = [1, 2, 5, 10];
const UNITS = [
  [1e9, 's'],
  [1e6, 'ms'],
  [1e3, 'µs'],
  [1, 'ns']
] as const;

/** The ticks of what is seen, from the left to the right. */
export function ticks({ seen, width }: Pick<Frame, 'seen' | 'width'>): Tick[] {
  const { fromNs, toNs } = seen;
  const perNs = width / (toNs - fromNs);
  const least = Math.max(LEAST_APART / perNs, 1);
  const power = 10 ** Math.floor(Math.log10(least));
  const step = power * (STEPS.find(each => each * power >= least) ?? 10);
  const furthest = Math.max(Math.abs(fromNs), Math.abs(toNs));
  const [unit, sign] = UNITS.find(([each]) => furthest >= each) ?? UNITS[3];
  const digits = Math.max(Math.ceil(Math.log10(unit / step) - 1e-9), 0);
  const first = Math.ceil(fromNs / step);
  const count = Math.max(Math.floor(toNs / step) - first + 1, 0);
  return Array.from({ length: count }, (_, at) => {
    const ns = (first + at) * step;
    return {
      x: Math.round((ns - fromNs) * perNs),
      text: `${(ns / unit).toFixed(digits)}\u00a0${sign}`
    };
  });
}
