/** A report in a tab of the main area: of a cell, or of a trace file. */

import type { Message } from '@lumino/messaging';
import { Widget } from '@lumino/widgets';
import { BokehLoader } from '../../core/bokeh';
import { h } from '../../core/dom';
import { History } from '../../server/history';
import type { Waiting } from '../../server/traces';
import type { CellReport } from '../../shapes/protocol';
import type { Stream } from '../../core/page_stream';
import { onThemeChange } from '../../core/theme';
import { ContentView } from '../parts/content';
import { reportContent } from './report';
import type { ReportPlace } from './report_actions';
import { reportActions } from './report_actions';
import { trans } from '../../core/translation';

export interface TabOptions extends Omit<ReportPlace, 'show' | 'openTab'> {
  /** Asks for the report. */
  readonly load: (waiting: Waiting) => Promise<CellReport>;
  /** What a person may do where there is none. */
  readonly instead: () => Node[];
}

export class ReportTab extends Widget {
  constructor(
    private readonly stream: Stream,
    private readonly options: TabOptions
  ) {
    super({
      node: h('div', {
        class: 'wb-root wb-content wb-report-tab',
        role: 'region',
        'aria-label': trans.__('Report'),
        tabindex: '-1'
      })
    });
    const { connection } = stream;
    this.history = new History(connection);
    this.view = new ContentView(
      this.node,
      new BokehLoader(connection),
      () => []
    );
    this.stop = onThemeChange(() => this.view.restyle());
  }

  /** Ask for the report and show it. */
  async load(title: string): Promise<void> {
    const { load, instead } = this.options;
    const content = async (waiting: Waiting) =>
      this.contentOf(await load(waiting));
    await this.view.showLater(title, content, instead);
  }

  override dispose(): void {
    if (this.isDisposed) {
      return;
    }
    this.stop();
    this.view.clear();
    super.dispose();
  }

  protected override onActivateRequest(message: Message): void {
    super.onActivateRequest(message);
    this.node.focus();
  }

  private contentOf(report: CellReport) {
    const place: ReportPlace = {
      ...this.options,
      openTab: null,
      show: report => this.view.show(this.contentOf(report))
    };
    return reportContent(
      report,
      reportActions(report, this.stream, this.history, place),
      true
    );
  }

  private readonly history: History;
  private readonly view: ContentView;
  private readonly stop: () => void;
}
