/** Opens cards in the drawer: a span's statistics, a receipt, a figure to explore. */

import type { Span, Viewport } from '../../core/viewport';
import { h } from '../../core/dom';
import { clip, when } from '../../core/format';
import type { History, RunOfCell } from '../../server/history';
import type {
  Alert,
  CellReport,
  Device,
  KeptRecord,
  Receipt
} from '../../shapes/protocol';
import type { Records } from '../../server/records';
import type { Stream } from '../../core/page_stream';
import { deviceLabel } from '../../core/words';
import type { CellActions } from './cells';
import type { Content } from '../parts/content';
import type { Drawer } from '../parts/drawer';
import { card } from '../parts/content';
import { postMortemContent } from './notices';
import { receiptContent } from './receipt';
import { reportContent } from '../reports/report';
import type { ReportPlace } from '../reports/report_actions';
import { reportActions } from '../reports/report_actions';
import { saveButtons } from '../parts/save';
import { spanContent, spanTitle } from './span';
import { trans } from '../../core/translation';

/** Around what is short, so that something is to be seen. */
const LEAST_MARGIN_MS = 5_000;

export class Cards implements CellActions {
  constructor(
    private readonly stream: Stream,
    private readonly history: History,
    private readonly drawer: Drawer,
    private readonly viewport: Viewport,
    private readonly records: Records,
    private readonly openTab: ((report: CellReport) => void) | null
  ) {}

  /** Open what is kept of something that happened. */
  open(record: KeptRecord): void {
    const { id, kind } = record;
    const title = clip(record.title, 80);
    if (kind === 'report') {
      void this.drawer.showLater(title, async () => {
        const report = await this.records.report(id);
        // from now on it can be compared with others, as if it had just come
        this.stream.statements.message(report);
        return this.reportContent(report);
      });
    } else if (kind === 'receipt') {
      void this.drawer.showLater(title, async () =>
        this.receiptContent(await this.records.receipt(id))
      );
    } else if (kind === 'alert') {
      void this.drawer.showLater(title, async () =>
        alertContent(await this.records.alert(id))
      );
    } else if (kind === 'post_mortem') {
      void this.drawer.showLater(title, async () =>
        postMortemContent(
          await this.records.postMortem(id),
          this.stream.store.devices
        )
      );
    } else {
      this.ask({
        fromMs: record.started_ms,
        toMs: record.ended_ms ?? this.stream.store.now(),
        kernelId: record.kernel_id ?? '',
        cellId: record.cell_id,
        title: record.title
      });
    }
  }

  /** Show when something happened, with a little around it. */
  show(record: KeptRecord): void {
    const fromMs = record.started_ms;
    const toMs = record.ended_ms ?? this.stream.store.now();
    const marginMs = Math.max((toMs - fromMs) * 0.1, LEAST_MARGIN_MS);
    this.viewport.show({ fromMs: fromMs - marginMs, toMs: toMs + marginMs });
  }

  /** The statistics of a span; `device` is the one that can be explored further. */
  span(span: Span | null, device: Device): void {
    if (span === null) {
      return;
    }
    void this.drawer.showLater(
      trans.__('Statistics of %1', spanTitle(span)),
      async () =>
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
      title: `${deviceLabel(device, this.stream.store.devices)}, ${when(fromMs)} to ${when(toMs)}`,
      parts: [
        { path: `api/v1/history/figure?${query.toString()}`, folded: null }
      ]
    });
  }

  report(report: CellReport): void {
    this.drawer.show(this.reportContent(report));
  }

  private reportContent(report: CellReport): Content {
    const place: ReportPlace = {
      show: shown => this.drawer.show(this.reportContent(shown), false),
      openTab: this.openTab,
      chooseFile: null,
      files: [],
      download: null
    };
    return reportContent(
      report,
      reportActions(report, this.stream, this.history, place)
    );
  }

  receipt(receipt: Receipt): void {
    this.drawer.show(this.receiptContent(receipt));
  }

  ask(run: RunOfCell): void {
    void this.drawer.showLater(
      trans.__('Receipt: %1', clip(run.title, 80)),
      async () => this.receiptContent(await this.history.receipt(run))
    );
  }

  private receiptContent(receipt: Receipt) {
    const { cell } = receipt;
    const { statements } = this.stream;
    const margin = receipt.wall_ms * 0.1;
    const report = [...statements.reports.values()].find(
      candidate =>
        candidate.kernel_id === cell.kernel_id &&
        candidate.execution_count === cell.execution_count
    );
    return receiptContent(receipt, {
      zoom: () =>
        this.viewport.show({
          fromMs: cell.started_ms - margin,
          toMs: cell.ended_ms + margin
        }),
      report: report ?? null,
      openReport: shown => this.report(shown)
    });
  }
}

function alertContent(alert: Alert): Content {
  const until =
    alert.until_ms === null
      ? trans.__('holds')
      : trans.__('until %1', when(alert.until_ms));
  const replay = alert.is_replay ? trans.__(', of a recording (replay)') : '';
  return card(
    clip(alert.title, 120),
    h('p', {}, clip(alert.text, 1000)),
    h(
      'p',
      { class: 'wb-note' },
      `${clip(alert.severity, 20)}, ${when(alert.since_ms)} ${until}${replay}`
    )
  );
}

function button(label: string, click: () => void): HTMLButtonElement {
  return h('button', { class: 'wb-button', click }, label);
}
