/** Where an axis ends and where its ticks are: calm, round and the same everywhere. */

import { quantity } from '../format';
import type { Unit } from '../protocol';

/** The next of 1, 2, 5 times a power of the unit's base at or above a value. */
export function roundTop(value: number, unit: Unit): number {
  const least = unit === 'bytes_per_s' ? 1e6 : 1;
  if (!(value > least)) {
    return least;
  }
  const size = 10 ** Math.floor(Math.log10(value));
  const step = [1, 2, 5].find(factor => factor * size >= value) ?? 10;
  return step * size;
}

/** Three ticks: nothing, half, all. */
export function valueTicks(top: number): number[] {
  return [0, top / 2, top];
}

/** Write ticks in the unit of the highest one; the highest carries the unit. */
export function tickLabels(ticks: number[], unit: Unit): string[] {
  const top = ticks[ticks.length - 1] ?? 0;
  const { digits, unit: name } = quantity(top, unit);
  const step = top / Number(digits);
  return ticks.map((tick, index) => {
    const value = tick / step;
    const written = value.toFixed(
      Number.isInteger(value) || value >= 100 ? 0 : 1
    );
    return index === ticks.length - 1 ? `${written}\u00a0${name}` : written;
  });
}

const TIME_STEPS_MS = [
  1, 2, 5, 10, 15, 30, 60, 120, 300, 600, 900, 1200, 1800
].map(s => s * 1000);

/** Whole multiples of a step that leaves at most `most` ticks in a span. */
export function timeTicks(fromMs: number, toMs: number, most: number) {
  const span = toMs - fromMs;
  const step =
    TIME_STEPS_MS.find(candidate => span / candidate <= most) ?? span;
  const ticks: number[] = [];
  for (let at = Math.ceil(fromMs / step) * step; at <= toMs; at += step) {
    ticks.push(at);
  }
  return ticks;
}
