/** Where an axis ends and where its ticks are: calm, round and the same everywhere. */

import { clock, date, quantity } from '../core/format';
import type { Unit } from '../shapes/protocol';

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

const HOUR_MS = 3_600_000;
const DAY_MS = 24 * HOUR_MS;
const TIME_STEPS_MS = [
  ...[1, 2, 5, 10, 15, 20, 30, 60, 120, 300, 600, 900, 1200, 1800].map(
    s => s * 1000
  ),
  ...[1, 2, 3, 6, 12].map(hours => hours * HOUR_MS),
  ...[1, 2, 4, 7, 14, 30].map(days => days * DAY_MS)
];

/** Whole multiples of a step that leaves at most `most` ticks in a span. */
export function timeTicks(fromMs: number, toMs: number, most: number) {
  const span = toMs - fromMs;
  const step =
    TIME_STEPS_MS.find(candidate => span / candidate <= most) ?? span;
  // days and hours are those of the browser's zone
  const zoneMs = new Date(fromMs).getTimezoneOffset() * 60_000;
  const ticks: number[] = [];
  const first = Math.ceil((fromMs - zoneMs) / step) * step + zoneMs;
  for (let at = first; at <= toMs; at += step) {
    ticks.push(at);
  }
  return ticks;
}

/** What a label of hours and minutes takes in the charts' font, with room. */
const LABEL_PX = 42;
/** The same with seconds. */
const LONG_LABEL_PX = 58;

/** As many ticks as have room for their labels, two at the least. */
export function ticksFor(fromMs: number, toMs: number, widthPx: number) {
  const sparse = timeTicks(fromMs, toMs, Math.max(2, widthPx / LONG_LABEL_PX));
  const dense = timeTicks(fromMs, toMs, Math.max(2, widthPx / LABEL_PX));
  const [first = 0, second = first] = dense;
  // a step of whole minutes is written without seconds
  return second - first >= 60_000 ? dense : sparse;
}

/** Write ticks of time: the day where one begins, else the time of day. */
export function timeLabels(ticks: readonly number[]): string[] {
  const [first = 0, second = first] = ticks;
  const step = second - first;
  return ticks.map(tick => {
    const time = clock(tick);
    const isMidnight = time === '00:00:00' && (step === 0 || step >= HOUR_MS);
    if (step >= DAY_MS || isMidnight) {
      return date(tick).slice(5);
    }
    return step >= 60_000 ? time.slice(0, 5) : time;
  });
}
