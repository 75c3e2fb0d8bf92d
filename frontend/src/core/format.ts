/** Numbers as people read them: one place for units, digits and clock times. */

import type { Unit } from '../shapes/protocol';

/** A value and its unit, apart, so that a view can align the digits. */
export interface Quantity {
  readonly digits: string;
  readonly unit: string;
}

const BINARY = ['B', 'KiB', 'MiB', 'GiB', 'TiB'];
const DECIMAL = ['B/s', 'kB/s', 'MB/s', 'GB/s', 'TB/s'];
const JOULES = ['J', 'kJ', 'MJ', 'GJ'];
const HOUR_MS = 3_600_000;
const DAY_MS = 24 * HOUR_MS;
/** What stands where there is no value. */
export const NONE = '–';

/** Three figures at most: 9.87, 98.7, 987. */
function threeFigures(value: number): string {
  const size = Math.abs(value);
  return value.toFixed(size >= 99.95 ? 0 : size >= 9.995 ? 1 : 2);
}

function scaled(value: number, step: number, names: string[]): Quantity {
  let power = 0;
  let rest = value;
  // 999.5 would be written "1000"
  while (Math.abs(rest) >= 999.5 && power < names.length - 1) {
    rest /= step;
    power += 1;
  }
  const digits = power === 0 ? rest.toFixed(0) : threeFigures(rest);
  return { digits, unit: names[power] ?? '' };
}

/** Give a metric's value in the unit a person expects. */
export function quantity(
  value: number | null | undefined,
  unit: Unit
): Quantity {
  if (value === null || value === undefined || !Number.isFinite(value)) {
    return { digits: NONE, unit: '' };
  }
  switch (unit) {
    case 'ratio':
      return { digits: (value * 100).toFixed(0), unit: '%' };
    case 'bytes':
      return scaled(value, 1024, BINARY);
    case 'bytes_per_s':
      return scaled(value, 1000, DECIMAL);
    case 'watts':
      return { digits: value.toFixed(0), unit: 'W' };
    case 'joules':
      return scaled(value, 1000, JOULES);
    case 'celsius':
      return { digits: value.toFixed(0), unit: '°C' };
    case 'mhz':
      return { digits: value.toFixed(0), unit: 'MHz' };
    case 'hz':
      return { digits: threeFigures(value), unit: 'Hz' };
    case 'ms':
      return { digits: value.toFixed(1), unit: 'ms' };
    default:
      return { digits: value.toFixed(0), unit: '' };
  }
}

/** Give a metric's value as one piece of text. */
export function text(value: number | null | undefined, unit: Unit): string {
  const { digits, unit: name } = quantity(value, unit);
  // a no-break space: value and unit stay on one line
  return name ? `${digits}\u00a0${name}` : digits;
}

/** Keep each number and its unit on one line. */
export function unbroken(sentence: string): string {
  return sentence.replace(
    /(\d) (?=(?:%|°C|s|ms|µs|min|h|W|kJ|J|B|[KMGT]i?B(?:\/s)?|[kMG]B\/s|MHz|Hz)(?![\w]))/g,
    '$1\u00a0'
  );
}

/** Give used and total in the total's unit: "12.3/140 GiB". */
export function usedOfTotal(
  used: number | null | undefined,
  total: number
): string {
  const { digits, unit } = quantity(total, 'bytes');
  const part =
    used === null || used === undefined || !Number.isFinite(used)
      ? NONE
      : threeFigures(used / 1024 ** BINARY.indexOf(unit));
  return `${part}/${digits}\u00a0${unit}`;
}

/** Give a duration in the unit that suits it. */
export function duration(ms: number | null | undefined): string {
  if (ms === null || ms === undefined || !Number.isFinite(ms)) {
    return NONE;
  }
  if (ms === 0) {
    return '0\u00a0ms';
  }
  if (Math.abs(ms) < 0.9995) {
    return `${threeFigures(ms * 1000)}\u00a0µs`;
  }
  if (ms < 999.5) {
    return `${threeFigures(ms)}\u00a0ms`;
  }
  if (ms < 59_950) {
    return `${threeFigures(ms / 1000)}\u00a0s`;
  }
  if (ms >= DAY_MS) {
    const hours = Math.round(ms / HOUR_MS);
    return `${Math.floor(hours / 24)}\u00a0d\u00a0${hours % 24}\u00a0h`;
  }
  if (ms >= HOUR_MS) {
    const minutes = Math.round(ms / 60_000);
    const part = String(minutes % 60).padStart(2, '0');
    return `${Math.floor(minutes / 60)}\u00a0h\u00a0${part}\u00a0min`;
  }
  const seconds = Math.round(ms / 1000);
  const rest = String(seconds % 60).padStart(2, '0');
  return `${Math.floor(seconds / 60)}\u00a0min\u00a0${rest}\u00a0s`;
}

/** Give a duration that is in ns, as the times of profiles and timelines are. */
export function durationNs(ns: number | null | undefined): string {
  return duration(typeof ns === 'number' ? ns / 1e6 : ns);
}

/** Give a share; a little is not nothing. */
export function share(ratio: number | null | undefined): string {
  if (ratio === null || ratio === undefined || !Number.isFinite(ratio)) {
    return NONE;
  }
  const percent = ratio * 100;
  if (percent > 0 && percent < 0.1) {
    return '<\u00a00.1\u00a0%';
  }
  const digits = percent > 0 && percent < 9.95 ? 1 : 0;
  return `${percent.toFixed(digits)}\u00a0%`;
}

/** Give a number of things. */
export function count(value: number): string {
  return value.toLocaleString('en');
}

/** Give bytes or operations per second. */
export function rate(perSecond: number, unit: 'B' | 'FLOP'): string {
  const names = DECIMAL.map(name => name.replace('B', unit));
  const { digits, unit: name } = scaled(perSecond, 1000, names);
  return `${digits}\u00a0${name}`;
}

/** Give the time of day, 24 hours, in the browser's zone. */
export function clock(ms: number): string {
  return new Date(ms).toTimeString().slice(0, 8);
}

/** Give the date, in the order that is read the same everywhere. */
export function date(ms: number): string {
  const at = new Date(ms);
  const part = (value: number) => String(value).padStart(2, '0');
  return `${at.getFullYear()}-${part(at.getMonth() + 1)}-${part(at.getDate())}`;
}

/** Give a moment: the time of day, with the date unless it is today. */
export function when(ms: number, nowMs = Date.now()): string {
  return date(ms) === date(nowMs) ? clock(ms) : `${date(ms)} ${clock(ms)}`;
}

/** Shorten text of unknown length and origin, such as the name of a kernel. */
export function clip(value: string, most = 120): string {
  if (value.length <= most) {
    return value;
  }
  // half of a pair is no text: the server would refuse it
  const last = value.charCodeAt(most - 2);
  const isSplit = last >= 0xd800 && last <= 0xdbff;
  return `${value.slice(0, isSplit ? most - 2 : most - 1)}…`;
}
