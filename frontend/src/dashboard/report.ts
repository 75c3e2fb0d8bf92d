/** One cell's report in the drawer: the verdict first, then what it rests upon. */

import { notebookName } from '../bands';
import type { BokehLoader } from '../bokeh';
import { h } from '../dom';
import { clip, when } from '../format';
import type { CellReport } from '../protocol';
import { TimelineView } from '../timeline/view';
import type { Content, Drawn, Part } from './drawer';
import { drawn } from './drawer';
import type { LiveActions } from './live';
import { LiveView } from './live';
import type { DifferenceActions } from './report_difference';
import { differencePart } from './report_difference';
import { figureGroups, headline } from './report_figures';
import { findingNodes } from './report_findings';
import { pictureParts, telemetryPart } from './report_pictures';
import { lineTable, profileTables } from './report_tables';

export interface ReportActions extends DifferenceActions {
  readonly live: LiveActions;
}

/** The card of a report. */
export function reportContent(
  report: CellReport,
  actions: ReportActions
): Content {
  const { profile } = report;
  const status = report.status === 'ok' ? '' : ` · ${report.status}`;
  const live =
    report.live === null ? null : () => new LiveView(report, actions.live);
  const parts = [
    h(
      'p',
      { class: 'wb-note' },
      `${clip(profile.gpu_name ?? 'No GPU in this profile', 80)} · ` +
        `${when(report.started_ms)}${status}`
    ),
    live,
    // while it runs there is only what grows
    ...(report.status === 'running' ? [] : profileParts(report, actions))
  ];
  return {
    title: `${whose(report)}: ${clip(report.title, 80)}`,
    parts: parts.filter(part => part !== null)
  };
}

/** What the profile says, and what it is compared with. */
function profileParts(
  report: CellReport,
  actions: ReportActions
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
    figureGroups(profile),
    profileTables(profile),
    differencePart(report, actions)
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

/** Name the cell of a report: "train.ipynb [7]". */
export function whose(report: CellReport): string {
  const { notebook, execution_count: count } = report;
  const name = notebook === null ? 'a kernel' : notebookName(notebook);
  return count === null ? name : `${name} [${count}]`;
}
