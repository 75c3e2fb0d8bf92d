/** A marked span of a timeline in figures. */

import { figures, table } from '../core/table';
import { h } from '../core/dom';
import { clip, count, durationNs, NONE, text } from '../core/format';
import type { TimelineStatistics, TimelineUse } from '../shapes/protocol';
import type { Part } from './reach';
import { slicesLink } from './slices';

const NS_PER_MS = 1e6;
const KINDS: Readonly<Record<string, string>> = {
  gpu: 'On the GPU',
  call: 'CUDA calls',
  annotation: 'Annotations (those within others count too)',
  operator: 'Operators (those within others count too)',
  profiler: 'The profiler itself'
};

/** Name a part: "1.2345 ms to 2.3456 ms (1.11 ms)". */
export function partWords({ fromNs, toNs }: Part): string {
  // as many digits as tell its ends apart
  const digits = Math.min(
    Math.max(2 - Math.floor(Math.log10((toNs - fromNs) / NS_PER_MS)), 0),
    6
  );
  const at = (ns: number) => `${(ns / NS_PER_MS).toFixed(digits)}\u00a0ms`;
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
          `${durationNs(gpu.busy_ns)} (${text(gpu.busy_ns / whole, 'ratio')})`
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
            text(row.busy_ns / whole, 'ratio'),
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
