/** All that is known about the pinned event of a timeline. */

import { figures } from '../core/table';
import { h } from '../core/dom';
import { trans } from '../core/translation';
import { clip, count, durationNs, share, text } from '../core/format';
import type { TimelineDetails, TimelineEvent } from '../shapes/protocol';

const NS_PER_MS = 1e6;
const LONGEST_NAME = 4000;
const LONGEST_SHAPE = 400;

export interface DetailsEvents {
  /** Goes to the row of its name in the tables; null where there is none. */
  readonly goToRow: (() => void) | null;
  show(event: TimelineEvent): void;
  close(): void;
}

/** The panel's content; every name is text. */
export function detailsNodes(
  answer: TimelineDetails,
  events: DetailsEvents
): HTMLElement[] {
  const link = (event: TimelineEvent) =>
    h(
      'button',
      {
        class: 'wb-link',
        title: 'Show and pin it',
        click: () => events.show(event)
      },
      `${clip(event.name, 60)} (${durationNs(event.duration_ns)})`
    );
  const close = h(
    'button',
    {
      class: 'wb-button',
      'aria-label': 'Unpin (Escape)',
      title: 'Unpin (Escape)',
      click: () => events.close()
    },
    '×'
  );
  const more = answer.launched_events - answer.launched.length;
  return [
    h(
      'div',
      { class: 'wb-timeline-pinned-head' },
      h('h4', {}, clip(answer.event.name, LONGEST_NAME)),
      close
    ),
    figures(detailRows(answer)),
    ...(events.goToRow === null
      ? []
      : [
          h(
            'p',
            {},
            h(
              'button',
              { class: 'wb-link', click: events.goToRow },
              trans.__('Its row in the tables (R)')
            )
          )
        ]),
    ...(answer.launch === null
      ? []
      : [
          h(
            'p',
            {},
            'Launched by ',
            link(answer.launch),
            `, ${durationNs(answer.event.start_ns - answer.launch.start_ns)} before.`
          )
        ]),
    ...(answer.launched_events === 0
      ? []
      : [
          h(
            'p',
            {},
            'Launched ',
            ...answer.launched.flatMap((event, at) => [
              at === 0 ? '' : ', ',
              link(event)
            ]),
            more > 0 ? ` and ${count(more)} more.` : '.'
          )
        ])
  ];
}

/** What is known, as label and value; what is not is left out. */
export function detailRows(answer: TimelineDetails): [string, string][] {
  const { event, facts } = answer;
  const rows: [string, string | null][] = [
    ['Lane', clip(answer.label, 80)],
    ['Start', `${(event.start_ns / NS_PER_MS).toFixed(4)}\u00a0ms`],
    ['Duration', durationNs(event.duration_ns)],
    ['Line', answer.line === null ? null : String(answer.line)],
    [
      'Shapes',
      facts.dims.some(dims => dims.length > 0) ? shapes(answer) : null
    ],
    [
      'Bytes',
      facts.size_bytes === null ? null : text(facts.size_bytes, 'bytes')
    ],
    ['Grid', facts.grid === null ? null : facts.grid.join(' × ')],
    ['Block', facts.block === null ? null : facts.block.join(' × ')],
    [
      'Registers per thread',
      facts.registers_per_thread === null
        ? null
        : count(facts.registers_per_thread)
    ],
    [
      'Shared memory per block',
      facts.shared_memory_bytes === null
        ? null
        : text(facts.shared_memory_bytes, 'bytes')
    ],
    [
      'Occupancy, estimated',
      facts.occupancy_ratio === null ? null : share(facts.occupancy_ratio)
    ]
  ];
  return rows.flatMap(([label, value]) =>
    value === null ? [] : [[label, value]]
  );
}

/** Tensors as "BFloat16 [64, 128], float [128]". */
function shapes({ facts: { dims, dtypes } }: TimelineDetails): string {
  const tensors = dims.flatMap((sizes, at) => {
    const dtype = (dtypes[at] ?? '').replace(/^c10::/, '');
    return sizes.length === 0 ? [] : [`${dtype} [${sizes.join(', ')}]`.trim()];
  });
  return clip(tensors.join(', '), LONGEST_SHAPE);
}
