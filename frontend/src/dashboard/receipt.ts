/** What a cell cost, as a card: this run beside the one before. */

import { h } from '../dom';
import { clip, when, duration, text } from '../format';
import type {
  Allocator,
  CellReport,
  Device,
  DeviceReceipt,
  Receipt
} from '../protocol';
import { deviceLabel } from '../words';
import type { Content } from './content';
import { card } from './content';
import { conditionList, coverage, keyFigures } from './span';
import { figures, table } from './table';
import { phrase, trans } from '../translation';

export interface ReceiptActions {
  /** Show the time of the run on the charts. */
  zoom(): void;
  /** The profile of the same run, if there is one. */
  readonly report: CellReport | null;
  openReport(report: CellReport): void;
}

/** The card of a receipt. */
export function receiptContent(
  receipt: Receipt,
  devices: readonly Device[],
  actions: ReceiptActions
): Content {
  const { cell, previous } = receipt;
  const status = cell.status === 'ok' ? '' : ` · ${cell.status}`;
  const wall = duration(receipt.wall_ms);
  // what holds for every device is said once, below them
  const common = new Set(
    receipt.devices[0]?.notes.filter(note =>
      receipt.devices.every(({ notes }) => notes.includes(note))
    )
  );
  const before = previous === null ? null : duration(previous.wall_ms);
  return card(
    trans.__('Receipt: %1', clip(cell.title, 80) || '(empty)'),
    h(
      'p',
      { class: 'wb-note' },
      `${when(cell.started_ms)} to ${when(cell.ended_ms)}${status}`
    ),
    h('p', { class: 'wb-receipt-line' }, clip(receipt.line, 400)),
    h(
      'div',
      { class: 'wb-controls' },
      h(
        'button',
        { class: 'wb-button', click: () => actions.zoom() },
        trans.__('Show this time')
      ),
      ...traceOffer(actions)
    ),
    figures([
      [
        trans.__('Wall time'),
        before === null ? wall : `${wall} (before: ${before})`
      ],
      [trans.__('GPU time'), trans.__('unknown without a trace')]
    ]),
    h(
      'div',
      { class: 'wb-tables' },
      ...receipt.devices.map(each =>
        deviceReceipt(each, receipt, devices, common)
      ),
      ...cell.allocators.map(allocatorFigures)
    ),
    ...[...common].map(note => h('p', { class: 'wb-note' }, clip(note, 300)))
  );
}

function traceOffer(actions: ReceiptActions): Node[] {
  const { report } = actions;
  return report === null
    ? [
        h(
          'span',
          { class: 'wb-note' },
          ...phrase(
            'For kernels, launches and GPU time, put %1 on the first line of this ' +
              'cell.',
            h('code', {}, '%%gpuprof')
          )
        )
      ]
    : [
        h(
          'button',
          { class: 'wb-button', click: () => actions.openReport(report) },
          trans.__('Open the trace of this run')
        )
      ];
}

function deviceReceipt(
  { span, shared, notes }: DeviceReceipt,
  { previous }: Receipt,
  devices: readonly Device[],
  common: ReadonlySet<string>
): HTMLElement {
  const device = devices.find(({ id }) => id === span.device);
  const name =
    device === undefined ? clip(span.device, 60) : deviceLabel(device, devices);
  const earlier = previous?.devices.find(
    each => each.span.device === span.device
  );
  const now = device === undefined ? [] : keyFigures(device, span);
  const then = new Map(
    device === undefined || earlier === undefined
      ? []
      : keyFigures(device, earlier.span)
  );
  return h(
    'section',
    { class: 'wb-card', 'aria-label': trans.__('What it cost on %1', name) },
    h('h4', {}, name),
    earlier === undefined
      ? figures(now)
      : table(
          trans.__('Against the same cell’s run before'),
          ['', trans.__('This run'), trans.__('Before')],
          now.map(([label, value]) => [label, value, then.get(label) ?? '–'])
        ),
    conditionList(span),
    coverage(span),
    // the server's notes say it where others did, or may have
    shared === false
      ? h('p', { class: 'wb-note' }, trans.__('Nobody else held memory on it.'))
      : null,
    ...notes
      .filter(note => !common.has(note))
      .map(note => h('p', { class: 'wb-note' }, clip(note, 300)))
  );
}

/** What torch counted in the kernel, which is the cell's own. */
function allocatorFigures(allocator: Allocator): HTMLElement {
  return h(
    'section',
    { class: 'wb-card', 'aria-label': trans.__('What torch counted') },
    h('h4', {}, `torch, cuda:${allocator.index}`),
    figures([
      [
        trans.__('Peak in the cell'),
        text(allocator.peak_allocated_bytes, 'bytes')
      ],
      [
        trans.__('Allocated after it'),
        text(allocator.allocated_bytes, 'bytes')
      ],
      [trans.__('Reserved after it'), text(allocator.reserved_bytes, 'bytes')],
      [trans.__('Allocation retries'), String(allocator.retries)]
    ])
  );
}
