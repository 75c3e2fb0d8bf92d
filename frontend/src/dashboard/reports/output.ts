/**
 * A cell's report in its notebook: the HTML that is saved with it, and below, as long
 * as the server keeps the report, edits to apply and its figures to explore.
 */

import type { IRenderMime } from '@jupyterlab/rendermime';
import { Panel, Widget } from '@lumino/widgets';
import type { BokehLoader } from '../../core/bokeh';
import type { Drawn } from '../parts/content';
import { applyButtons } from '../../notebook/edited_cell';
import { reportFigures } from './report';
import { h } from '../../core/dom';
import { count } from '../../core/format';
import type { CellReport } from '../../shapes/protocol';
import type { Statements } from '../../core/statements';
import { onThemeChange } from '../../core/theme';
import { hasNoEvents, NO_EVENTS } from '../../timeline/view';

/** The output that names a report. */
export const REPORT_MIME = 'application/vnd.warpbook.report+json';

export class ReportOutput extends Panel implements IRenderMime.IRenderer {
  /**
   * @param mimeType - of the report's name
   * @param html - shows the HTML beside it
   * @param statements - hears of reports
   * @param bokeh - draws figures
   */
  constructor(
    private readonly mimeType: string,
    private readonly html: IRenderMime.IRenderer,
    private readonly statements: Statements,
    private readonly bokeh: BokehLoader
  ) {
    super();
    this.node.dataset['wbKeys'] = 'own';
    this.addWidget(html);
    this.addWidget(new Widget({ node: this.place }));
    this.stops = [
      statements.onChange(() => this.look()),
      onThemeChange(() => this.drawn.forEach(view => view.restyle()))
    ];
  }

  async renderModel(model: IRenderMime.IMimeModel): Promise<void> {
    const data = model.data[this.mimeType] as { id?: unknown } | null;
    this.reportId = typeof data?.id === 'string' ? data.id : null;
    await this.html.renderModel(model);
    this.look();
  }

  override dispose(): void {
    if (this.isDisposed) {
      return;
    }
    this.stops.forEach(stop => stop());
    this.drawn.forEach(view => view.clear());
    super.dispose();
  }

  /** See whether the server has told of the report; it comes after the output. */
  private look(): void {
    const report =
      this.reportId === null
        ? undefined
        : this.statements.reports.get(this.reportId);
    if (report !== undefined && this.shown !== report.id) {
      this.shown = report.id;
      this.offer(report);
    }
  }

  /** Offer the figures; they are fetched and drawn when a person asks for them. */
  private offer(report: CellReport): void {
    const events = report.timeline_events;
    const words =
      typeof events === 'number'
        ? `Timeline and figures of ${count(events)} events`
        : 'Timeline and figures';
    this.drawn.forEach(view => view.clear());
    this.drawn = [];
    const buttons = h('div', { class: 'wb-controls' }, ...applyButtons(report));
    if (hasNoEvents(report) && report.profile.gpu_name === null) {
      const note = h('p', { class: 'wb-note' }, NO_EVENTS);
      this.place.replaceChildren(buttons, note);
      return;
    }
    const inside = h('div');
    const details = h(
      'details',
      {
        class: 'wb-folded',
        toggle: () => {
          if (this.drawn.length === 0) {
            this.drawn = reportFigures(report, this.bokeh);
            inside.replaceChildren(...this.drawn.map(({ node }) => node));
          }
        }
      },
      h('summary', {}, words),
      inside
    );
    this.place.replaceChildren(buttons, details);
  }

  private readonly place = h('div', { class: 'wb-root wb-output' });
  private readonly stops: (() => void)[];
  private drawn: Drawn[] = [];
  private reportId: string | null = null;
  private shown: string | null = null;
}

/**
 * What has the focus in a view with keys of its own keeps them from the notebook, where
 * 0 0 restarts the kernel. A letter with Ctrl or Cmd stays JupyterLab's.
 * The mark is on the target, since a notebook's own ":focus" is looked for before any
 * parent; and it is set before JupyterLab hears of the key.
 */
export function keepKeys(event: KeyboardEvent): void {
  const { target, key, ctrlKey, metaKey } = event;
  if (target instanceof Element && target.closest('[data-wb-keys]') !== null) {
    target.toggleAttribute(
      'data-lm-suppress-shortcuts',
      !(ctrlKey || metaKey) || key.length > 1 || key === ' '
    );
  }
}
