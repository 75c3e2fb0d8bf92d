/** What a cell cost, as a card: drawn as the server has worded it. */

import { h } from '../../core/dom';
import { clip, when } from '../../core/format';
import type {
  CellReport,
  DeviceReceiptView,
  FigureGroup,
  Receipt
} from '../../shapes/protocol';
import { phrase, trans } from '../../core/translation';
import type { Content } from '../parts/content';
import { card } from '../parts/content';
import { conditionList } from './span';
import { figures, table } from '../../core/table';
import {
  cellTitle,
  ending,
  labelled,
  notes,
  word
} from '../parts/server_words';

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
  actions: ReceiptActions
): Content {
  const { cell, view } = receipt;
  const status = cell.status === 'ok' ? '' : ` · ${ending(cell.status)}`;
  return card(
    trans.__('Receipt: %1', cellTitle(cell.title)),
    h(
      'p',
      { class: 'wb-note' },
      trans.__('%1 to %2', when(cell.started_ms), when(cell.ended_ms)) + status
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
    ...(view === null
      ? []
      : [
          figures(labelled(view.figures)),
          h(
            'div',
            { class: 'wb-tables' },
            ...view.devices.map(deviceReceipt),
            ...view.allocators.map(allocatorFigures)
          ),
          ...notes(view.notes)
        ])
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

function deviceReceipt(device: DeviceReceiptView): HTMLElement {
  const name = clip(device.name, 60);
  return h(
    'section',
    { class: 'wb-card', 'aria-label': trans.__('What it cost on %1', name) },
    h('h4', {}, name),
    device.table === null
      ? null
      : table(
          word(device.table.title),
          ['', ...device.table.header.map(word)],
          device.table.rows.map(row => row.map(({ text }) => word(text)))
        ),
    conditionList(device),
    ...notes(device.notes)
  );
}

/** What torch counted in the kernel, which is the cell's own. */
function allocatorFigures(group: FigureGroup): HTMLElement {
  return h(
    'section',
    { class: 'wb-card', 'aria-label': trans.__('What torch counted') },
    h('h4', {}, clip(group.title, 60)),
    figures(labelled(group.figures))
  );
}
