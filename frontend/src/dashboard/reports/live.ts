/** A long cell in the drawer: it grows while the cell runs. */

import { h, setText } from '../../core/dom';
import { clip, clock, count, durationNs, NONE, share } from '../../core/format';
import type {
  CellProfile,
  CellReport,
  Live,
  LiveWindow,
  StepTimes
} from '../../shapes/protocol';
import type { Statements } from '../../core/statements';
import type { Drawn } from '../parts/content';
import { busyRatio, liveChart, stepNs } from './live_chart';
import {
  causeNodes,
  changeNodes,
  headlineFigures,
  pill,
  tableNodes,
  verdictNodes
} from './report_parts';
import { figures, scrolled } from '../../core/table';

/** A kernel that is well tells something every ten seconds. */
const SILENT_MS = 30_000;
const LOOK_MS = 5_000;
const MOST_NOTES = 20;
const MOST_WORDS = 800;

export interface LiveActions {
  readonly statements: Statements;
  /** Now, by the server's clock. */
  readonly now: () => number;
  /** Show the report that the cell has ended with. */
  readonly open: (report: CellReport) => void;
}

/** Say how a report's cell stands; empty for one that ended well. */
export function statusWords(report: CellReport, nowMs: number): string {
  if (report.status !== 'running') {
    return report.status === 'ok' ? '' : report.status;
  }
  return nowMs - report.ended_ms > SILENT_MS
    ? `no news since ${clock(report.ended_ms)}`
    : 'running';
}

/** The GPU's part of a run, and the whole: without the profiler, as in its report. */
export function runTimes({
  bare,
  gpu_busy_ns: busyNs,
  wall_ns: wallNs
}: CellProfile) {
  if (bare === null) {
    return { busyNs, wholeNs: wallNs };
  }
  const { host_wait_ns, kernel_wait_ns, other_ns } = bare.idle;
  const idleNs = host_wait_ns + kernel_wait_ns + other_ns;
  return { busyNs: bare.gpu_busy_ns, wholeNs: bare.gpu_busy_ns + idleNs };
}

/** The part of a report that is about its windows. */
export class LiveView implements Drawn {
  readonly node = h('section', {
    class: 'wb-live',
    'aria-label': 'Live profile'
  });

  constructor(
    private report: CellReport,
    private readonly actions: LiveActions
  ) {
    this.node.append(
      this.status,
      this.verdict,
      this.figures,
      this.notes,
      this.chart,
      scrolled(this.windows),
      this.newest
    );
    this.write();
    if (report.status === 'running') {
      const stop = actions.statements.onChange(() => this.updateReport());
      const timer = window.setInterval(() => this.writeStatus(), LOOK_MS);
      this.stop = () => {
        stop();
        window.clearInterval(timer);
      };
    }
  }

  restyle(): void {
    // everything is coloured by the page's own styles
  }

  clear(): void {
    this.stop();
  }

  private updateReport(): void {
    const report = this.actions.statements.reports.get(this.report.id);
    if (report === undefined || report === this.report) {
      return;
    }
    this.report = report;
    if (report.status === 'running') {
      this.write();
      return;
    }
    this.stop();
    const { activeElement } = document;
    if (this.node.parentElement?.contains(activeElement)) {
      // who is reading is not thrown out of what they read
      this.write();
      this.newest.replaceChildren(
        h(
          'button',
          {
            class: 'wb-button',
            click: () => this.actions.open(report)
          },
          'Show the whole report'
        )
      );
    } else {
      this.actions.open(report);
    }
  }

  private write(): void {
    const { live, view, status } = this.report;
    if (live === null) {
      return;
    }
    this.writeStatus();
    this.verdict.replaceChildren(
      ...(live.verdict === null
        ? []
        : [
            pill(live.verdict.kind),
            ' ',
            h('strong', {}, clip(live.verdict.sentence, MOST_WORDS))
          ])
    );
    this.verdict.hidden = live.verdict === null;
    this.figures.replaceChildren(figures(liveFigures(live)));
    this.notes.replaceChildren(
      ...live.notes
        .slice(0, MOST_NOTES)
        .map(words => h('p', { class: 'wb-warning' }, clip(words, 400)))
    );
    this.chart.replaceChildren(
      ...(live.windows.length === 0 ? [] : liveChart(live))
    );
    this.writeWindows(live);
    const newest = live.windows.at(-1)?.start_ns;
    if (status === 'running' && view !== null && newest !== this.shownWindow) {
      this.shownWindow = newest;
      this.newest.replaceChildren(
        h('h4', {}, 'The newest window'),
        ...verdictNodes(view),
        headlineFigures(view),
        ...changeNodes(view),
        ...causeNodes(view),
        ...view.sections.map(({ tables }) => tableNodes(tables))
      );
    }
  }

  private writeStatus(): void {
    const words = statusWords(this.report, this.actions.now());
    setText(this.status, words === '' ? 'Ended.' : `${capital(words)}.`);
  }

  /** Add the new rows above, so that what a person has opened stays. */
  private writeWindows({ windows }: Live): void {
    const keys = new Set(windows.map(key));
    for (const [known, row] of this.rows) {
      if (!keys.has(known)) {
        row.remove();
        this.rows.delete(known);
      }
    }
    let below: Node | null = null;
    for (const part of windows) {
      const known = this.rows.get(key(part));
      const row = known ?? windowRow(part);
      if (known === undefined) {
        this.rows.set(key(part), row);
        this.body.insertBefore(row, below ?? null);
      }
      below = row;
    }
    setText(
      this.caption,
      `Windows: ${count(windows.reduce((sum, part) => sum + part.merged, 0))}`
    );
    this.windows.hidden = windows.length === 0;
  }

  private readonly status = h('p', { class: 'wb-note', role: 'status' });
  private readonly verdict = h('p', { class: 'wb-cell-verdict' });
  private readonly figures = h('div', {});
  private readonly notes = h('div', {});
  private readonly chart = h('div', {});
  private readonly caption = h('caption', {});
  private readonly body = h('tbody', {});
  private readonly windows = h(
    'table',
    { class: 'wb-table' },
    this.caption,
    h(
      'thead',
      {},
      h(
        'tr',
        {},
        ...[
          'After',
          'Steps',
          'A step before it',
          'A step in it',
          'GPU busy',
          'Profiling took',
          'Verdict'
        ].map(head => h('th', {}, head))
      )
    ),
    this.body
  );
  private readonly newest = h('div', { class: 'wb-live-newest' });
  private readonly rows = new Map<string, HTMLTableRowElement>();
  private shownWindow: number | undefined = NaN;
  private stop: () => void = () => undefined;
}

function liveFigures(live: Live): [string, string][] {
  const took = live.elapsed_ns > 0 ? live.overhead_ns / live.elapsed_ns : null;
  const set: [string, string][] =
    live.setup_ns === null
      ? []
      : [['Once, to set the profiler up', durationNs(live.setup_ns)]];
  const slow: [string, string][] =
    live.slow_steps.length === 0
      ? []
      : [['Slow steps took more', slowWords(live)]];
  const by = live.steps_by === null ? '' : `, reported by ${live.steps_by}`;
  return [
    ['Time', durationNs(live.elapsed_ns)],
    ['Steps', `${count(live.steps)}${by}`],
    ['A step without the profiler', stepWords(live.bare)],
    ['In windows', stepWords(live.profiled)],
    [
      'Profiling took',
      `${share(took)} (aim: below ${share(live.aim_share)}), ` +
        durationNs(live.overhead_ns)
    ],
    ...set,
    ...slow
  ];
}

function slowWords({ slow_steps: steps, slow_ns: slowNs }: Live): string {
  const slowest = steps.reduce((one, other) =>
    other.duration_ns > one.duration_ns ? other : one
  );
  return (
    `${durationNs(slowNs)}, the slowest step ${count(slowest.step)} with ` +
    durationNs(slowest.duration_ns)
  );
}

function stepWords(times: StepTimes | null): string {
  return times === null
    ? NONE
    : `${durationNs(times.median_ns)} median, ${durationNs(times.p95_ns)} p95, ` +
        `${durationNs(times.slowest_ns)} at most`;
}

function windowRow(part: LiveWindow): HTMLTableRowElement {
  const verdict =
    part.kind === null
      ? NONE
      : h(
          'details',
          {},
          h('summary', {}, clip(part.kind, 40)),
          clip(part.sentence, MOST_WORDS)
        );
  const lost = part.launches - part.matched;
  return h(
    'tr',
    {},
    h(
      'td',
      {},
      part.merged > 1
        ? `${durationNs(part.start_ns)} (${part.merged} windows)`
        : durationNs(part.start_ns)
    ),
    ...[
      count(part.steps),
      durationNs(part.bare_step_ns),
      durationNs(stepNs(part)),
      share(busyRatio(part)),
      durationNs(part.overhead_ns)
    ].map(value => h('td', { class: 'wb-figure-cell' }, value)),
    h('td', {}, verdict, lost > 0 ? ` ${count(lost)} launches lost` : null)
  );
}

function key({ start_ns: startNs, merged }: LiveWindow): string {
  return `${startNs} ${merged}`;
}

function capital(words: string): string {
  return `${words[0]?.toUpperCase() ?? ''}${words.slice(1)}`;
}
