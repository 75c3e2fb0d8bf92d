/** What a person can do with a report, wherever it is shown. */

import { saveFile } from '../../core/dom';
import type { History } from '../../server/history';
import type { CellReport } from '../../shapes/protocol';
import type { Stream } from '../../core/page_stream';
import { TimelineSource } from '../../timeline/source';
import type { ReportActions } from './report';

/** What differs between the places that show reports. */
export interface ReportPlace {
  /** Shows a report in this very place. */
  readonly show: (report: CellReport) => void;
  /** Opens a report in a tab; null where it is in one. */
  readonly openTab: ((report: CellReport) => void) | null;
  /** Lets a person choose a trace file, and reads it; null where nobody can. */
  readonly chooseFile: (() => Promise<CellReport | null>) | null;
  /** The trace files that are open, to compare with. */
  readonly files: Iterable<CellReport>;
  /** Saves the trace file itself; null for a cell. */
  readonly download: (() => Promise<void>) | null;
}

/** Give what can be done with a report. */
export function reportActions(
  report: CellReport,
  stream: Stream,
  history: History,
  place: ReportPlace
): ReportActions {
  const { connection, statements, store } = stream;
  const { openTab, download } = place;
  const others = [...statements.reports.values(), ...place.files];
  return {
    others: others.filter(({ id }) => id !== report.id),
    compare: (before, after) => history.difference(before.id, after.id),
    chooseFile: place.chooseFile,
    openTab: openTab === null ? null : () => openTab(report),
    download:
      download ??
      (typeof report.timeline_events === 'number'
        ? async () =>
            saveFile(await new TimelineSource(connection, report.id).export())
        : null),
    checklist: () => history.checklist(report.id),
    savePage: async () => saveFile(await history.page(report.id)),
    live: { statements, now: () => store.now(), open: place.show }
  };
}
