/** The list of cell reports on the dashboard; each opens in the drawer. */

import { h } from '../dom';
import { clip, clock, duration, NONE } from '../format';
import type { CellReport } from '../protocol';
import type { Statements } from '../statements';
import { whose } from './report';
import { busyShare } from './report_figures';
import { table } from './table';

export class ReportList {
  readonly node = h('section', {
    class: 'wb-reports',
    'aria-label': 'Cell reports'
  });

  constructor(
    private readonly statements: Statements,
    private readonly open: (report: CellReport) => void
  ) {
    this.update();
  }

  update(): void {
    const reports = [...this.statements.reports.values()].sort(
      (one, other) => other.started_ms - one.started_ms
    );
    // a report may come again, with more in it
    const state = JSON.stringify(
      reports.map(({ id, status, ended_ms: endedMs }) => [id, status, endedMs])
    );
    if (this.shown === state) {
      return;
    }
    this.shown = state;
    const body =
      reports.length === 0
        ? h(
            'p',
            { class: 'wb-note' },
            'No cell has been profiled yet. Run ',
            h('code', {}, '%load_ext warpbook'),
            ' once, then put ',
            h('code', {}, '%%gpuprof'),
            ' on the first line of a cell.'
          )
        : table(
            `Profiled cells: ${reports.length}`,
            ['Cell', 'Notebook', 'Verdict', 'Started', 'GPU busy', 'Duration'],
            reports.map(report => [
              h(
                'button',
                { class: 'wb-link', click: () => this.open(report) },
                clip(report.title, 80) || '(empty)'
              ),
              whose(report),
              clip(report.profile.verdict?.kind ?? NONE, 40),
              clock(report.started_ms),
              busyShare(report.profile),
              duration(report.profile.wall_ms)
            ])
          );
    this.node.replaceChildren(h('h3', {}, 'Cell reports'), body);
  }

  private shown: string | null = null;
}
