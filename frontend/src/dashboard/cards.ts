/** Opens cards in the drawer: a span's statistics, a receipt, a figure to explore. */

import type { Span, Viewport } from '../chart/viewport';
import { h } from '../dom';
import { clip, clock } from '../format';
import type { History, RunOfCell } from '../history';
import type { CellReport, Device, Receipt } from '../protocol';
import type { Stream } from '../shared';
import { deviceLabel } from '../words';
import type { CellActions } from './cells';
import type { Drawer } from './drawer';
import { receiptContent } from './receipt';
import { reportContent } from './report';
import { saveButtons } from './save';
import { spanContent, spanTitle } from './span';

export class Cards implements CellActions {
  constructor(
    private readonly stream: Stream,
    private readonly history: History,
    private readonly drawer: Drawer,
    private readonly viewport: Viewport
  ) {}

  /** The statistics of a span; `device` is the one that can be explored further. */
  span(span: Span | null, device: Device): void {
    if (span === null) {
      return;
    }
    void this.drawer.showLater(`Statistics of ${spanTitle(span)}`, async () =>
      spanContent(await this.history.span(span), this.stream.store.devices, [
        h(
          'div',
          { class: 'wb-controls' },
          button('Zoom to it', () => this.viewport.show(span)),
          button(
            `Explore ${deviceLabel(device, this.stream.store.devices)}`,
            () => this.explore(device, span)
          )
        ),
        saveButtons(this.history, span)
      ])
    );
  }

  /** One device in one span, as a Bokeh figure. */
  explore(device: Device, { fromMs, toMs }: Span): void {
    const query = new URLSearchParams({
      device: device.id,
      from_ms: fromMs.toFixed(0),
      to_ms: toMs.toFixed(0)
    });
    this.drawer.show({
      title: `${deviceLabel(device, this.stream.store.devices)}, ${clock(fromMs)} to ${clock(toMs)}`,
      parts: [
        { path: `api/v1/history/figure?${query.toString()}`, folded: null }
      ]
    });
  }

  report(report: CellReport): void {
    const { reports } = this.stream.statements;
    this.drawer.show(
      reportContent(report, {
        others: [...reports.values()].filter(({ id }) => id !== report.id),
        compare: other => this.history.difference(report.id, other.id),
        live: {
          statements: this.stream.statements,
          now: () => this.stream.store.now(),
          open: each => this.report(each)
        }
      })
    );
  }

  receipt(receipt: Receipt): void {
    this.drawer.show(this.receiptContent(receipt));
  }

  ask(run: RunOfCell): void {
    void this.drawer.showLater(`Receipt: ${clip(run.title, 80)}`, async () =>
      this.receiptContent(await this.history.receipt(run))
    );
  }

  private receiptContent(receipt: Receipt) {
    const { cell } = receipt;
    const { store, statements } = this.stream;
    const margin = receipt.wall_ms * 0.1;
    const report = [...statements.reports.values()].find(
      each =>
        each.kernel_id === cell.kernel_id &&
        each.execution_count === cell.execution_count
    );
    return receiptContent(receipt, store.devices, {
      zoom: () =>
        this.viewport.show({
          fromMs: cell.started_ms - margin,
          toMs: cell.ended_ms + margin
        }),
      report: report ?? null,
      openReport: each => this.report(each)
    });
  }
}

function button(label: string, click: () => void): HTMLButtonElement {
  return h('button', { class: 'wb-button', click }, label);
}
