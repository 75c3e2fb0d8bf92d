/** The tables of a cell's profile. */

import { h } from '../dom';
import { clip, NONE } from '../format';
import type { CellProfile, LineRow, Metrics } from '../protocol';
import { annotations } from './report_cpu';
import type { Cell, Sortable } from './sortable';
import {
  name,
  number,
  ratio,
  size,
  sortableTable,
  time,
  timeNs,
  words
} from './sortable';

const NO_OPERATOR = '(no operator)';

/** What each line of the cell took, beside its code; null if nobody asked. */
export function lineTable({ lines }: CellProfile): HTMLElement | null {
  if (lines.length === 0) {
    return null;
  }
  const times = (row: LineRow) => [
    row.host_ms,
    row.kernel_ms,
    row.copy_ms,
    row.wait_ms,
    row.idle_ms
  ];
  const longest = Math.max(...lines.flatMap(times).map(ms => ms ?? 0));
  const barred = (ms: number | null): Cell => ({
    ...time(ms),
    bar: longest > 0 ? (ms ?? 0) / longest : 0
  });
  const lineRows = sortableTable({
    caption: 'Lines of the cell',
    heads: ['Line', 'Times', 'Host', 'Kernels', 'Copies', 'Waits', 'GPU idle'],
    rows: lines.map(row => [
      {
        text: `${String(row.line).padStart(3)}  ${clip(row.code, 200)}`,
        value: row.line,
        whole: clip(row.code, 2000)
      },
      number(row.times),
      ...times(row).map(barred)
    ]),
    isCode: true
  });
  return h('div', { class: 'wb-scroll' }, lineRows);
}

/** All other tables that have rows. */
export function profileTables(profile: CellProfile): HTMLElement {
  const { metrics } = profile;
  const tables = [
    kernels(profile),
    ...(metrics === null
      ? []
      : [kernelWork(metrics), syncPoints(metrics), idlePlaces(metrics)]),
    copies(profile),
    paths(profile),
    annotations(profile),
    operators(profile),
    memory(profile),
    memoryPeaks(profile),
    ...(metrics === null ? [] : [streams(metrics)])
  ];
  return h(
    'div',
    { class: 'wb-tables' },
    ...tables.filter(({ rows }) => rows.length > 0).map(sortableTable)
  );
}

function kernels(profile: CellProfile): Sortable {
  return {
    caption: 'Kernels by time',
    heads: ['Kernel', 'Calls', 'Time', 'Share'],
    rows: profile.kernels.map(row => [
      name(row.name),
      number(row.calls),
      time(row.time_ms),
      ratio(row.share_ratio)
    ])
  };
}

function kernelWork({ kernel_work: rows }: Metrics): Sortable {
  return {
    caption: 'Kernels by what limits them, and how near they come to it',
    heads: ['Limit', 'Kernels', 'Time', 'Of datasheet', 'Of measured'],
    rows: rows.map(row => [
      name(row.bound),
      number(row.kernels),
      timeNs(row.time_ns),
      ratio(row.of_ceiling),
      ratio(row.of_measured)
    ])
  };
}

function syncPoints({ sync_points: rows }: Metrics): Sortable {
  return {
    caption: 'Waits for the GPU',
    heads: ['Where', ...lineHead(rows), 'Calls', 'Time', 'GPU ran dry'],
    rows: rows.map(row => [
      name(row.operator === null ? row.name : `${row.operator} (${row.name})`),
      ...lineCell(row, rows),
      number(row.calls),
      timeNs(row.time_ns),
      timeNs(row.stall_ns)
    ])
  };
}

function idlePlaces({ idle_places: rows }: Metrics): Sortable {
  return {
    caption: 'Where the host was while the GPU waited for it',
    heads: ['Where', ...lineHead(rows), 'And', 'GPU idle'],
    rows: rows.map(row => [
      name(row.operator ?? NO_OPERATOR),
      ...lineCell(row, rows),
      words(row.cause === 'launching' ? 'launched' : 'other work'),
      timeNs(row.time_ns)
    ])
  };
}

function copies(profile: CellProfile): Sortable {
  return {
    caption: 'Copies and memsets',
    heads: ['Kind', 'Calls', 'Size', 'Time', 'Rate'],
    rows: profile.copies.map(row => [
      name(row.kind),
      number(row.calls),
      size(row.size_bytes),
      time(row.time_ms),
      rate(row.size_bytes, row.time_ms)
    ])
  };
}

/** What was called, how often, and for how long. */
function called(
  caption: string,
  heads: Sortable['heads'],
  rows: readonly (readonly [string, number, number])[]
): Sortable {
  return {
    caption,
    heads,
    rows: rows.map(([what, calls, ms]) => [name(what), number(calls), time(ms)])
  };
}

function paths(profile: CellProfile): Sortable {
  return called(
    'GPU work by the operators that launched it',
    ['Operators', 'Pieces', 'Time'],
    profile.paths.map(row => [row.path, row.calls, row.time_ms])
  );
}

function operators(profile: CellProfile): Sortable {
  return called(
    'Operators by time on the host',
    ['Operator', 'Calls', 'Self'],
    profile.operators.map(row => [row.name, row.calls, row.self_ms])
  );
}

function memory(profile: CellProfile): Sortable {
  return {
    caption: 'Memory of torch',
    heads: [
      'GPU',
      'Peak',
      'Reserved',
      'Change',
      'Fragmented',
      'Retries',
      'cudaMalloc'
    ],
    rows: profile.memory.map(row => [
      name(`GPU ${row.device}`),
      size(row.peak_allocated_bytes),
      size(row.peak_reserved_bytes),
      size(row.allocated_change_bytes),
      ratio(row.fragmentation_share),
      number(row.retries),
      number(row.driver_allocations)
    ])
  };
}

function memoryPeaks({ memory_curves: rows }: CellProfile): Sortable {
  return {
    caption: "Peak of torch's memory",
    heads: ['Where', 'Line', 'Size', 'At', 'Allocations and frees'],
    rows: rows.map(row => [
      name(`GPU ${row.device}: ${row.peak_path || NO_OPERATOR}`),
      number(row.peak_line),
      size(row.peak_allocated_bytes),
      time(row.peak_ms),
      number(row.changes)
    ])
  };
}

function streams({ streams: rows }: Metrics): Sortable {
  return {
    caption: 'Stream idle time by cause, as HTA splits it',
    heads: ['Stream', 'Host wait', 'Kernel wait', 'Other'],
    rows: rows.map(row => [
      name(`GPU ${row.device}, stream ${row.stream}`),
      timeNs(row.host_wait_ns),
      timeNs(row.kernel_wait_ns),
      timeNs(row.other_ns)
    ])
  };
}

interface AtLine {
  readonly line: number | null;
}

/** Lines have a column where somebody asked for them. */
function lineHead(rows: readonly AtLine[]): string[] {
  return rows.some(({ line }) => line !== null) ? ['Line'] : [];
}

function lineCell({ line }: AtLine, rows: readonly AtLine[]): Cell[] {
  return lineHead(rows).map(() => number(line));
}

function rate(bytes: number | null, ms: number): Cell {
  if (bytes === null || !(ms > 0)) {
    return { text: NONE, value: null };
  }
  const value = bytes / ms / 1e6;
  return {
    text:
      value >= 0.1 ? `${value.toFixed(1)}\u00a0GB/s` : '<\u00a00.1\u00a0GB/s',
    value
  };
}
