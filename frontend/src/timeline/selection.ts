/** A marked span of a timeline in figures. */

import { figures, table } from '../core/table';
import { h } from '../core/dom';
import { clip, count, durationNs, NONE, share } from '../core/format';
import type { TimelineStatistics, TimelineUse } from '../shapes/protocol';
import type { Part } from './reach';
import { slicesLink } from './slices';

const NS_PER_MS = 1e6;
const NS_PER_S = 1e9;
const KINDS: Readonly<Record<string, string>> = {
  gpu: 'On the GPU',
  call: 'CUDA calls',
  annotation: 'Annotations (nested ones included)',
  operator: 'Operators (nested ones included)',
  profiler: 'The profiler itself'
};

/** Name a part: "1.2345 ms to 2.3456 ms (1.11 ms)", in seconds where it is that late. */
export function partWords({ fromNs, toNs }: Part): string {
  const isLate = toNs >= NS_PER_S;
  const [unitNs, unit] = isLate ? [NS_PER_S, 's'] : [NS_PER_MS, 'ms'];
  // as many digits as tell its ends apart
  const digits = Math.min(
    Math.max(2 - Math.floor(Math.log10((toNs - fromNs) / unitNs)), 0),
    isLate ? 9 : 6
  );
  const at = (ns: number) => `${(ns / unitNs).toFixed(digits)}\u00a0${unit}`;
  return `${at(fromNs)} to ${at(toNs)} (${durationNs(toNs - fromNs)})`;
}

/** The figures of a marked span; `show` goes to a part of the timeline. */
export function selectionNodes(
  statistics: TimelineStatistics,
  show: (part: Part) => void
): HTMLElement[] {
  const part = { fromNs: statistics.from_ns, toNs: statistics.to_ns };
  const whole = part.toNs - part.fromNs;
  const kinds = [...new Set(statistics.names.map(({ kind }) => kind))];
  return [
    h('h4', {}, `Marked: ${partWords(part)}`),
    figures(
      statistics.gpus.flatMap(gpu => [
        [
          `${clip(gpu.label, 40)} busy`,
          `${durationNs(gpu.busy_ns)} (${share(gpu.busy_ns / whole)})`
        ],
        [`${clip(gpu.label, 40)} idle`, `${count(gpu.gaps)} gaps`],
        ['Longest gap', gpu.gaps === 0 ? NONE : durationNs(gpu.longest_gap_ns)]
      ])
    ),
    h(
      'div',
      { class: 'wb-tables' },
      table(
        'Rows',
        ['Row', 'Events', 'Busy', 'Share', 'Gaps', 'Longest gap'],
        statistics.rows
          .filter(row => row.events > 0)
          .map(row => [
            `${clip(row.label, 80)}${row.level === 0 ? '' : `, level ${row.level + 1}`}`,
            count(row.events),
            durationNs(row.busy_ns),
            share(row.busy_ns / whole),
            count(row.gaps),
            longestGap(row, show)
          ])
      ),
      ...kinds.map(kind =>
        table(
          KINDS[kind] ?? clip(kind, 40),
          ['Name', 'Events', 'Time'],
          statistics.names
            .filter(name => name.kind === kind)
            .map(name => [
              h(
                'span',
                { title: clip(name.name, 2000) },
                `${clip(name.name, 90)} `,
                slicesLink(name.name)
              ),
              count(name.events),
              durationNs(name.time_ns)
            ])
        )
      )
    )
  ];
}

function longestGap(
  row: TimelineUse,
  show: (part: Part) => void
): string | HTMLElement {
  const { longest_gap_from_ns: fromNs, longest_gap_ns: gapNs } = row;
  if (fromNs === null) {
    return NONE;
  }
  const around = Math.max(gapNs, 1);
  return h(
    'button',
    {
      class: 'wb-link',
      title: 'Show this gap',
      click: () =>
        show({ fromNs: fromNs - around, toNs: fromNs + gapNs + around })
    },
    durationNs(gapNs)
  );
}
