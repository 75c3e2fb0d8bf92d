/** One cell's report in the drawer: the verdict first, then what it rests upon. */

import { notebookName } from '../bands';
import type { BokehLoader } from '../bokeh';
import { h } from '../dom';
import { clip, when } from '../format';
import type { CellReport } from '../protocol';
import { TimelineView } from '../timeline/view';
import type { Content, Drawn, Part } from './content';
import { drawn } from './content';
import type { LiveActions } from './live';
import { LiveView } from './live';
import { perfettoPart } from './perfetto';
import { cpuGroup } from './report_cpu';
import type { DifferenceActions } from './report_difference';
import { comparePart, differencePart } from './report_difference';
import { figureGroups, headline } from './report_figures';
import { findingNodes } from './report_findings';
import { pictureParts, telemetryPart } from './report_pictures';
import { lineTable, profileTables } from './report_tables';

export interface ReportActions extends DifferenceActions {
  readonly live: LiveActions;
  /** Opens it in a tab of its own; null where it is in one. */
  readonly openTab: (() => void) | null;
  /** Saves its trace as a file; null where there is none. */
  readonly download: (() => Promise<void>) | null;
}

/**
 * The card of a report.
 * @param report - of a cell or a trace file
 * @param actions - what a person can do with it
 * @param isDocument - it fills a tab, so what it is compared with is chosen at its top
 */
export function reportContent(
  report: CellReport,
  actions: ReportActions,
  isDocument = false
): Content {
  const { profile } = report;
  const isFile = typeof report.file === 'string';
  const status = report.status === 'ok' ? '' : ` · ${report.status}`;
  const live =
    report.live === null ? null : () => new LiveView(report, actions.live);
  const parts = [
    h(
      'p',
      { class: 'wb-note' },
      `${clip(profile.gpu_name ?? 'No GPU in this profile', 80)} · ` +
        `${isFile ? 'saved ' : ''}${when(report.started_ms)}${status}`
    ),
    live,
    // while it runs there is only what grows
    ...(report.status === 'running'
      ? []
      : [
          isDocument ? comparePart(actions) : null,
          ...profileParts(report, actions, isDocument)
        ])
  ];
  return {
    title: isFile
      ? clip(report.title, 80)
      : `${whose(report)}: ${clip(report.title, 80)}`,
    parts: parts.filter(part => part !== null),
    openTab: actions.openTab
  };
}

/** What the profile says, and what it is compared with. */
function profileParts(
  report: CellReport,
  actions: ReportActions,
  isDocument: boolean
): (Part | null)[] {
  const { profile } = report;
  // what the windows of a long cell add up to stands above
  const notes = report.live === null ? report.notes : report.notes.slice(-1);
  return [
    ...findingNodes(profile),
    ...notes.map(words => h('p', {}, clip(words, 1000))),
    headline(profile),
    lineTable(profile),
    ...figureParts(report),
    actions.download === null ? null : perfettoPart(actions.download),
    cpuGroup(profile),
    figureGroups(profile),
    profileTables(profile),
    differencePart(report, isDocument ? null : actions)
  ];
}

/** What of a report is drawn, and what belongs to it. */
function figureParts(report: CellReport): Part[] {
  const parts = [
    (bokeh: BokehLoader) => new TimelineView(bokeh, report),
    telemetryPart(report),
    ...pictureParts(report)
  ];
  return parts.filter(part => part !== null);
}

/** The figures of a report without its card. */
export function reportFigures(report: CellReport, bokeh: BokehLoader): Drawn[] {
  return figureParts(report).flatMap(part =>
    part instanceof Node ? [] : [drawn(part, bokeh)]
  );
}

/** Name the cell or the file of a report: "train.ipynb [7]". */
export function whose(report: CellReport): string {
  const { notebook, execution_count: count, file } = report;
  if (typeof file === 'string') {
    return notebookName(file);
  }
  const name = notebook === null ? 'a kernel' : notebookName(notebook);
  return count === null ? name : `${name} [${count}]`;
}
