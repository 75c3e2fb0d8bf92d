/** A run without GPU work: where its time went; and the parts that a program names. */

import { h } from '../dom';
import { count, duration, share } from '../format';
import type { AnnotationRow, CellProfile, CpuTime } from '../protocol';
import type { Sortable } from './sortable';
import { name, number, time } from './sortable';

const UNKNOWN = 'not known';

/** Where the CPU's time went; null of a run with GPU work. */
export function cpuGroup(profile: CellProfile): HTMLElement | null {
  const cpu = profile.cpu as CpuTime | null | undefined;
  if (cpu === null || cpu === undefined) {
    return null;
  }
  const part = (nanoseconds: number | null): string =>
    nanoseconds === null
      ? UNKNOWN
      : `${duration(nanoseconds / 1e6)} (${share(nanoseconds / cpu.window_ns)})`;
  const { use } = cpu;
  const rows: [string, string][] = [
    ['Window, profiled', duration(cpu.window_ns / 1e6)],
    ['In the DataLoader', part(cpu.loading_ns)],
    ['In large operators', part(cpu.operators_ns)],
    ['In small calls, and between them', part(cpu.small_calls_ns)],
    ['In Python', part(cpu.python_ns)],
    ['Waiting for other ranks', part(cpu.communication_ns)],
    ['Asleep', part(cpu.waiting_ns)],
    ['Without a core, as far as known', part(cpu.lost_ns)],
    [
      'Operators called',
      `${count(cpu.calls)}, ${count(cpu.small_calls)} of them small`
    ],
    [
      'Cores',
      use === null
        ? UNKNOWN
        : `${(use.process_ns / Math.max(cpu.window_ns, 1)).toFixed(1)} of ` +
          `${count(use.cores)} busy, ${count(use.threads)} torch threads`
    ]
  ];
  const title = 'Time of the CPU';
  return h(
    'div',
    { class: 'wb-groups' },
    h(
      'section',
      { 'aria-label': title },
      h('h4', {}, title),
      h(
        'dl',
        {},
        ...rows.flatMap(([label, value]) => [
          h('dt', {}, label),
          h('dd', {}, value)
        ])
      )
    )
  );
}

/** Parts of the program that it names itself, with the host's and the GPU's time. */
export function annotations(profile: CellProfile): Sortable {
  const parts = profile.annotations as AnnotationRow[] | undefined;
  return {
    caption: 'By annotation',
    heads: ['Annotation', 'Times', 'Host time', 'GPU time', 'GPU work'],
    rows: (parts ?? []).map(row => [
      name(row.name),
      number(row.times),
      time(row.host_ms),
      time(row.gpu_ms),
      number(row.work)
    ])
  };
}
