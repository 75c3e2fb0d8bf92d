/** The list of cell reports on the dashboard; each opens in the drawer. */

import { h, rewrite } from '../../core/dom';
import { clip, when, durationNs, NONE, share } from '../../core/format';
import type { CellProfile, CellReport } from '../../shapes/protocol';
import type { Statements } from '../../core/statements';
import { runTimes, statusWords } from './live';
import type { PointerPress } from '../parts/pointer_press';
import { whose } from './whose';
import { table } from '../../core/table';
import { phrase, trans } from '../../core/translation';
import { cellTitle } from '../parts/server_words';

export class ReportList {
  /** Scrolls by itself, so that every report that is kept can be opened. */
  private readonly list = h('div', { class: 'wb-report-list' });
  readonly node = h(
    'section',
    { class: 'wb-reports', 'aria-label': trans.__('Cell reports') },
    h('h3', {}, trans.__('Cell reports')),
    this.list
  );

  constructor(
    private readonly statements: Statements,
    private readonly now: () => number,
    private readonly pressed: PointerPress,
    private readonly open: (report: CellReport) => void
  ) {
    this.update();
  }

  update(): void {
    if (this.pressed.isDown) {
      return;
    }
    const reports = [...this.statements.reports.values()].sort(
      (one, other) => other.started_ms - one.started_ms
    );
    // a report may come again, with more in it
    const state = JSON.stringify(
      reports.map(report => [report.id, this.status(report), report.ended_ms])
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
            ...phrase(
              'No cell has been profiled yet. Run %1 once, then put %2 on the first ' +
                'line of a cell.',
              h('code', {}, '%load_ext warpbook'),
              h('code', {}, '%%gpuprof')
            )
          )
        : table(
            trans.__('Profiled cells: %1', reports.length),
            [
              trans.__('Cell'),
              trans.__('Notebook'),
              trans.__('Verdict'),
              trans.__('Started'),
              trans.__('GPU busy'),
              trans.__('Duration')
            ],
            reports.map(report => [
              this.opener(report),
              whose(report),
              clip((report.live ?? report.profile).verdict?.kind ?? NONE, 40),
              when(report.started_ms),
              busyShare(report.profile),
              durationNs(
                report.live?.elapsed_ns ?? runTimes(report.profile).wholeNs
              )
            ]),
            reports.length
          );
    rewrite(this.list, body);
  }

  /** Go to the newest report. */
  focus(): void {
    this.list.querySelector('button')?.focus();
  }

  /** The button that opens a report, with how its cell stands if it runs. */
  private opener(report: CellReport): HTMLElement {
    const title = cellTitle(report.title);
    return h(
      'span',
      {},
      h(
        'button',
        {
          class: 'wb-link',
          'data-opens': report.id,
          click: () =>
            this.open(this.statements.reports.get(report.id) ?? report)
        },
        title
      ),
      ...(report.status === 'running'
        ? [
            ' ',
            h('span', { class: 'wb-badge wb-badge-live' }, this.status(report))
          ]
        : [])
    );
  }

  private status(report: CellReport): string {
    return statusWords(report, this.now());
  }

  private shown: string | null = null;
}

function busyShare(profile: CellProfile): string {
  const { busyNs, wholeNs } = runTimes(profile);
  return busyNs === null || !(wholeNs > 0) ? NONE : share(busyNs / wholeNs);
}
