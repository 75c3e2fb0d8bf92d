/** One cell's report in the drawer: the verdict first, then what it rests upon. */

import type { BokehLoader } from '../../core/bokeh';
import { h } from '../../core/dom';
import { clip, when } from '../../core/format';
import type {
  CellProfile,
  CellReport,
  ChecklistView,
  ReportView
} from '../../shapes/protocol';
import { onSlices } from '../../timeline/slices';
import { TimelineView } from '../../timeline/view';
import type { Content, Drawn, Part } from '../parts/content';
import { drawn } from '../parts/content';
import { FlameGraph } from './flame';
import type { LiveActions } from './live';
import { LiveView } from './live';
import { Links, TABS } from './links';
import { perfettoPart } from './perfetto';
import { checklistPart } from './report_checklist';
import type { DifferenceActions } from './report_difference';
import { comparePart, differencePart } from './report_difference';
import {
  causeNodes,
  changeNodes,
  editedNodes,
  groupNodes,
  headlineFigures,
  lineTable,
  tableNodes,
  trialNodes,
  verdictNodes
} from './report_parts';
import { stallNodes } from './report_stalls';
import { changeButtons, editedButtons } from '../../notebook/edited_cell';
import { saveButton } from '../parts/save_button';
import { Tabs } from '../parts/tabs';
import { whose } from './whose';
import type { Drawing } from '../parts/picture';
import { trans } from '../../core/translation';

const PARTS = 'Parts of the report';
/** The id of its row: the table begins with it. */
const LONGEST_KERNEL = 'kernels-0';

export interface ReportActions extends DifferenceActions {
  readonly live: LiveActions;
  /** Opens it in a tab of its own; null where it is in one. */
  readonly openTab: (() => void) | null;
  /** Asks for its answers to the optimisation checklist. */
  readonly checklist: () => Promise<ChecklistView>;
  /** Saves it as one HTML file. */
  readonly savePage: () => Promise<void>;
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
  const { profile, view } = report;
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
    ...(report.status === 'running' || view === null
      ? []
      : [
          isDocument ? comparePart(report, actions) : null,
          ...profileParts(report, view, actions, isDocument)
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
  view: ReportView,
  actions: ReportActions,
  isDocument: boolean
): (Part | null)[] {
  const events = report.timeline_events;
  const links = new Links(view, typeof events === 'number' && events > 0);
  // what the windows of a long cell add up to stands above
  const notes = report.live === null ? report.notes : report.notes.slice(-1);
  const head = headNode(view, notes, links);
  let timeline: TimelineView | null = null;
  const timelinePart = (bokeh: BokehLoader) =>
    (timeline = new TimelineView(bokeh, report, name => links.rowOf(name)));
  const tabs: [string, (Part | null)[]][] = [
    [
      TABS.causes,
      [
        ...changeNodes(view, links, index => changeButtons(report, index)),
        ...trialNodes(view),
        ...editedNodes(view, editedButtons(report)),
        ...causeNodes(view, links),
        lineTable(view)
      ]
    ],
    [TABS.stalls, stallNodes(view, links)],
    [
      TABS.tables,
      [
        flamePart(report.profile),
        rooflinePart(report),
        ...view.sections.map(({ tables }) => tableNodes(tables, links))
      ]
    ],
    [
      TABS.timeline,
      [
        timelinePart,
        telemetryPart(report),
        memoryPart(report),
        actions.download === null ? null : perfettoPart(actions.download)
      ]
    ],
    [TABS.figures, [groupNodes(view)]]
  ];
  return [
    head,
    tabsOf(tabs, links, {
      // a timeline wants the room
      shown: name => (head.open = name !== TABS.timeline),
      slices: name => timeline?.highlight(name)
    }),
    checklistPart(actions.checklist),
    saveButton('Save as HTML', actions.savePage),
    differencePart(report, isDocument ? null : actions)
  ];
}

/** What stands above the tabs; collapsed it is the verdict on one line. */
function headNode(
  view: ReportView,
  notes: readonly string[],
  links: Links
): HTMLDetailsElement {
  const verdict = verdictNodes(view);
  const line = view.headline === null ? 'Figures of the run' : verdict.shift();
  return h(
    'details',
    { class: 'wb-report-head', open: '' },
    h('summary', {}, line ?? null),
    ...verdict,
    ...notes.map(words => h('p', {}, clip(words, 1000))),
    headlineFigures(view),
    // few keys from the title to what a person mostly looks for
    ...links.to(trans.__('Longest kernel'), [LONGEST_KERNEL])
  );
}

/** Tabs of what there is; null where there is nothing. */
function tabsOf(
  tabs: readonly [string, (Part | null)[]][],
  links: Links,
  events: {
    readonly shown: (name: string) => void;
    /** Slices in the timeline are asked for. */
    readonly slices: (name: string) => void;
  }
): Part | null {
  const filled = tabs
    .map(([name, parts]) => ({
      name,
      parts: parts.filter(part => part !== null)
    }))
    .filter(({ parts }) => parts.length > 0);
  return filled.length === 0
    ? null
    : bokeh => {
        const made = new Tabs(bokeh, PARTS, filled, events.shown);
        links.tabs = made;
        onSlices(made.node, name => {
          made.open(TABS.timeline);
          events.slices(name);
        });
        return made;
      };
}

/** Who called whom; null where no call was recorded. */
function flamePart({ call_tree: nodes }: CellProfile): Part | null {
  return nodes.length === 0 ? null : () => new FlameGraph(nodes);
}

/** The figures of a report without its card. */
export function reportFigures(report: CellReport, bokeh: BokehLoader): Drawn[] {
  const figures = [
    telemetryPart(report),
    memoryPart(report),
    rooflinePart(report, 'Roofline')
  ].filter(part => part !== null);
  return [
    new TimelineView(bokeh, report, () => null),
    ...figures.map(figure => drawn(figure, bokeh))
  ];
}

/** What the GPUs' own counters said meanwhile; null without a GPU, or of a file. */
export function telemetryPart(report: CellReport): Drawing | null {
  const { file, profile } = report;
  return profile.gpu_name === null || typeof file === 'string'
    ? null
    : drawing(report, 'telemetry');
}

/** Memory over time; null if it was not recorded. */
export function memoryPart(report: CellReport): Drawing | null {
  const { profile } = report;
  return profile.gpu_name === null || profile.memory_curves.length === 0
    ? null
    : drawing(report, 'memory');
}

/**
 * The roofline; null without a GPU.
 * @param folded - the words that it is folded below; null is open
 */
export function rooflinePart(
  report: CellReport,
  folded: string | null = null
): Drawing | null {
  return report.profile.gpu_name === null
    ? null
    : drawing(report, 'roofline', folded);
}

function drawing(
  { id }: CellReport,
  kind: string,
  folded: string | null = null
): Drawing {
  return {
    path: `api/v1/reports/${encodeURIComponent(id)}/figure?kind=${kind}`,
    folded
  };
}
