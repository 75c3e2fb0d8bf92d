/** Cells of a lab's card as text; what is somebody else's is not escaped yet. */

import { count, durationNs, rate, share, text } from '../core/format';
import type { Card, CardStatus, Cell, RatioCell } from '../shapes/protocol';

const MARKS: Record<CardStatus, string> = {
  passed: '✓',
  failed: '✗',
  unsupported: '?',
  error: '✗',
  'timed out': '✗',
  undecided: '?'
};

/** How it went, in one line. */
export function heading({ status, title, label, message }: Card): string {
  return `${MARKS[status]} ${title}: ${label}. ${message}`;
}

/** Write a cell. */
export function cellText(cell: Cell): string {
  switch (cell.type) {
    case 'text':
      return cell.text;
    case 'status':
      return `${MARKS[cell.status]} ${cell.status}`;
    case 'number':
      return `${count(cell.value)} ${cell.unit}`.trimEnd();
    case 'ratio':
      return ratio(cell);
    case 'bytes':
      return `${text(cell.size_bytes, 'bytes')} ${cell.what}`.trimEnd();
    case 'duration':
      return durationNs(cell.duration_ns);
    case 'rate':
      return rate(cell.per_second, cell.unit);
    case 'location':
      return `${String(cell.line).padStart(4)} | ${cell.code}`;
    case 'code':
      return cell.code;
  }
}

/** Whether a cell is set to the right, as figures are. */
export function isFigure({ type }: Cell): boolean {
  return !['text', 'status', 'location', 'code'].includes(type);
}

function ratio(cell: RatioCell): string {
  const { low, high, pairs, required } = cell;
  const write = (value: number) => inStyle(value, cell);
  const interval =
    low === null || high === null
      ? ''
      : ` (95 % CI ${write(low)} to ${write(high)}` +
        `${pairs === null ? '' : `, ${count(pairs)} pairs`})`;
  const least = required === null ? '' : `; required: ${write(required)}`;
  return `${write(cell.value)} ${cell.of}`.trimEnd() + interval + least;
}

/** A factor or a share; with an interval all its digits count. */
function inStyle(value: number, { style, low }: RatioCell): string {
  if (style === 'percent') {
    return low === null ? share(value) : `${(100 * value).toFixed(1)} %`;
  }
  if (low !== null) {
    return `${value.toFixed(3)}×`;
  }
  return `${value >= 100 ? value.toFixed(0) : Number(value.toPrecision(3))}×`;
}
