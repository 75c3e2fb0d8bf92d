/** Cell reports: the list on the dashboard, and one report in the drawer. */

import { notebookName } from '../bands';
import { h } from '../dom';
import { clip, clock, duration, NONE, text } from '../format';
import type { CellProfile, CellReport } from '../protocol';
import type { Statements } from '../statements';
import type { Content } from './drawer';
import { figures, table } from './table';

/** More would push the figures out of sight. */
const MOST_WARNINGS = 20;

function busyShare(profile: CellProfile): string {
  const { gpu_busy_ms: busy, wall_ms: wall } = profile;
  return busy === null || !(wall > 0) ? NONE : text(busy / wall, 'ratio');
}

function where(report: CellReport): string {
  const { notebook, execution_count: count } = report;
  const name = notebook === null ? 'a kernel' : notebookName(notebook);
  return count === null ? name : `${name} [${count}]`;
}

export class ReportList {
  readonly node = h('section', {
    class: 'wb-reports',
    'aria-label': 'Cell reports'
  });

  constructor(
    private readonly statements: Statements,
    private readonly open: (content: Content) => void
  ) {
    this.update();
  }

  update(): void {
    const reports = [...this.statements.reports.values()].sort(
      (one, other) => other.started_ms - one.started_ms
    );
    const ids = reports.map(({ id }) => id).join();
    if (this.shown === ids) {
      return;
    }
    this.shown = ids;
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
            ['Cell', 'Notebook', 'Started', 'GPU busy', 'Duration'],
            reports.map(report => [
              h(
                'button',
                {
                  class: 'wb-link',
                  click: () => this.open(reportContent(report))
                },
                clip(report.title, 80) || '(empty)'
              ),
              where(report),
              clock(report.started_ms),
              busyShare(report.profile),
              duration(report.profile.wall_ms)
            ])
          );
    this.node.replaceChildren(h('h3', {}, 'Cell reports'), body);
  }

  private shown: string | null = null;
}

/** One report as the drawer shows it. */
export function reportContent(report: CellReport): Content {
  const { profile } = report;
  const status = report.status === 'ok' ? '' : ` · ${report.status}`;
  return {
    title: `${where(report)}: ${clip(report.title, 80)}`,
    figure: `api/v1/reports/${encodeURIComponent(report.id)}/figure`,
    above: [
      h(
        'p',
        { class: 'wb-note' },
        `${profile.gpu_name ?? 'No GPU in this profile'} · ` +
          `${clock(report.started_ms)}${status}`
      ),
      ...profile.completeness.warnings
        .slice(0, MOST_WARNINGS)
        .map(words => h('p', { class: 'wb-warning' }, clip(words, 400))),
      profileFigures(profile)
    ],
    below: [h('div', { class: 'wb-tables' }, ...tables(profile))]
  };
}

function profileFigures(profile: CellProfile): HTMLElement {
  const called = (count: number | null, ms: number | null) =>
    count === null ? NONE : `${count} in ${duration(ms)}`;
  const ofGpu: [string, string][] = [
    ['GPU busy', `${duration(profile.gpu_busy_ms)} (${busyShare(profile)})`],
    ['Kernels', called(profile.kernel_calls, profile.kernel_time_ms)],
    ['Copies', duration(profile.copy_time_ms)],
    ['Launches', called(profile.launches, profile.launch_api_ms)],
    [
      'Waits for the GPU',
      called(profile.synchronizations, profile.synchronization_ms)
    ],
    ['Peak memory', text(profile.peak_allocated_bytes, 'bytes')],
    ['Peak reserved', text(profile.peak_reserved_bytes, 'bytes')]
  ];
  const rows: [string, string][] = [
    ['Duration', duration(profile.wall_ms)],
    ...(profile.gpu_name === null ? [] : ofGpu),
    ['Profiler itself', duration(profile.profiler_ms)]
  ];
  return figures(rows);
}

function tables(profile: CellProfile): HTMLElement[] {
  const { kernels, copies, operators } = profile;
  const all: [number, HTMLElement][] = [
    [
      kernels.length,
      table(
        'Kernels by time',
        ['Kernel', 'Calls', 'Time', 'Share'],
        kernels.map(row => [
          name(row.name),
          String(row.calls),
          duration(row.time_ms),
          text(row.share_ratio, 'ratio')
        ])
      )
    ],
    [
      copies.length,
      table(
        'Copies',
        ['Kind', 'Calls', 'Size', 'Time'],
        copies.map(row => [
          name(row.kind),
          String(row.calls),
          text(row.size_bytes, 'bytes'),
          duration(row.time_ms)
        ])
      )
    ],
    [
      operators.length,
      table(
        'Operators by time on the host',
        ['Operator', 'Calls', 'Self'],
        operators.map(row => [
          name(row.name),
          String(row.calls),
          duration(row.self_ms)
        ])
      )
    ]
  ];
  return all.filter(([rows]) => rows > 0).map(([, node]) => node);
}

/** A name that may be thousands of characters of C++: short, whole on hover. */
function name(value: string): HTMLElement {
  return h('span', { title: clip(value, 2000) }, clip(value, 90));
}
