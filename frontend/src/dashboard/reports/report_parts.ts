/** The parts of a report, drawn as the server has worded them. */

import { h } from '../../core/dom';
import { clip } from '../../core/format';
import { ASK_FOR_LAB } from '../../labs/words';
import type {
  CauseView,
  FigureGroup,
  Headline,
  LabelledFigure,
  ReportTable,
  ReportView,
  TimeBar
} from '../../shapes/protocol';
import { trans } from '../../core/translation';
import type { Links } from './links';
import { TABS } from './links';
import { bar, sortableTable } from './sortable';
import { figures } from '../../core/table';

/** More would push the figures out of sight. */
const MOST_WARNINGS = 20;
const MOST_WORDS = 800;
const MOST_DIFF = 20_000;

/** The verdict, where the time goes, and how far to believe it. */
export function verdictNodes(view: ReportView): Node[] {
  return [
    ...(view.headline === null ? [] : headlineNodes(view.headline, view)),
    ...timeNodes(view),
    ...view.warnings
      .slice(0, MOST_WARNINGS)
      .map(words => h('p', { class: 'wb-warning' }, clip(words, 400)))
  ];
}

/** The badge with the cause, and what to change below. */
function headlineNodes(
  { kind, label, cause, change }: Headline,
  { meanings }: ReportView
): Node[] {
  return [
    h(
      'p',
      { class: 'wb-cell-verdict' },
      pill(kind, label, meanings),
      ' ',
      h('strong', {}, clip(cause, MOST_WORDS))
    ),
    ...(change === ''
      ? []
      : [h('p', { class: 'wb-cell-change' }, clip(change, MOST_WORDS))])
  ];
}

/** What shares are of, with one bar of where that time goes. */
function timeNodes({ base, time, causes, meanings }: ReportView): Node[] {
  if (time !== null) {
    const labels = new Map(causes.map(({ id, label }) => [id, label]));
    return [
      timeBar(time, ids => meanings[labels.get(ids[0] ?? '') ?? ''] ?? '')
    ];
  }
  return base === '' ? [] : [h('p', { class: 'wb-note' }, clip(base, 200))];
}

/**
 * One bar of where the time goes, with its parts in words below.
 * @param bar - of the time
 * @param meaning - of a part, by the ids of its causes
 */
export function timeBar(
  { title, parts }: TimeBar,
  meaning: (causes: readonly string[]) => string = () => ''
): HTMLElement {
  const segment = (ratio: number, kind: string | null, label: string) => {
    const node = h('span', {
      class: 'wb-time-part',
      'data-kind': kind ?? '',
      title: clip(label, 100)
    });
    node.style.width = `${(Math.min(Math.max(ratio, 0), 1) * 100).toFixed(1)}%`;
    return node;
  };
  return h(
    'figure',
    { class: 'wb-time-bar' },
    h('figcaption', { class: 'wb-note' }, clip(title, 200)),
    h(
      'div',
      { class: 'wb-time-parts', 'aria-hidden': 'true' },
      ...parts.map(({ kind, label, ratio }) => segment(ratio, kind, label))
    ),
    h(
      'ul',
      { class: 'wb-time-legend', 'aria-label': clip(title, 200) },
      ...parts.map(({ kind, label, causes }) => {
        const title = clip(meaning(causes), 300);
        const more = title === '' ? {} : { title };
        return h('li', { 'data-kind': kind ?? '', ...more }, clip(label, 100));
      })
    )
  );
}

/** The figures to read first. */
export function headlineFigures(view: ReportView): HTMLElement {
  return figures(pairs(view.figures));
}

/**
 * What to change, with the time of the cell after it.
 * @param view - of the report
 * @param links - to what each acts on; null has none
 * @param buttons - those of the change at an index
 */
export function changeNodes(
  { changes }: Pick<ReportView, 'changes'>,
  links: Links | null = null,
  buttons: (index: number) => Node[] = () => []
): Node[] {
  if (changes.length === 0) {
    return [];
  }
  const rows = changes.map((change, index) => {
    const row = h(
      'li',
      { 'data-change': clip(change.name, 40) },
      h('strong', {}, clip(change.heading, MOST_WORDS)),
      ' ',
      clip(change.sentence, MOST_WORDS),
      ' ',
      h('span', { class: 'wb-note' }, clip(change.evidence, MOST_WORDS)),
      ...teacher(change.lab),
      ...(links === null
        ? [h('span', { class: 'wb-note' }, ' ', clip(change.acts_on, 200))]
        : [
            ...links.to(trans.__('Acts on'), change.causes),
            ...links.to(trans.__('Rows'), change.rows)
          ]),
      ...(change.diff === ''
        ? []
        : [h('pre', { class: 'wb-diff' }, clip(change.diff, MOST_DIFF))]),
      ...buttons(index)
    );
    links?.add(change.id, TABS.causes, () => row);
    return row;
  });
  return [
    h('h4', {}, 'What to change'),
    h('ol', { class: 'wb-changes', 'aria-label': 'What to change' }, ...rows)
  ];
}

/** What changes gave that were measured on copies of the cell's state. */
export function trialNodes({ trials }: Pick<ReportView, 'trials'>): Node[] {
  if (trials.length === 0) {
    return [];
  }
  const rows = trials.map(({ name, outcome, sentence }) =>
    h(
      'li',
      { 'data-outcome': clip(outcome, 40) },
      h('strong', {}, clip(name, 80)),
      ' ',
      clip(sentence, MOST_WORDS)
    )
  );
  return [
    h('h4', {}, 'Tried on copies'),
    h('ul', { class: 'wb-trials', 'aria-label': 'Tried on copies' }, ...rows)
  ];
}

/** The cell with changes made to its source, and what each of them gave. */
export function editedNodes(
  { edited }: Pick<ReportView, 'edited'>,
  buttons: readonly Node[]
): Node[] {
  if (edited === null) {
    return [];
  }
  const { sentence, diff, table } = edited;
  return [
    h('h4', {}, 'The edited cell'),
    h('p', {}, clip(sentence, MOST_WORDS)),
    ...(diff === ''
      ? []
      : [h('pre', { class: 'wb-diff' }, clip(diff, MOST_DIFF))]),
    ...buttons,
    ...(table === null ? [] : [sortableTable(table)])
  ];
}

/** Every cause with its share, the one that explains most first. */
export function causeNodes(
  { causes, meanings }: Pick<ReportView, 'causes' | 'meanings'>,
  links: Links | null = null
): Node[] {
  if (causes.length === 0) {
    return [];
  }
  return [
    h('h4', {}, 'What explains the time'),
    h(
      'ol',
      { class: 'wb-findings', 'aria-label': 'What explains the time' },
      ...causes.map(cause => causeRow(cause, meanings, links))
    )
  ];
}

function causeRow(
  cause: CauseView,
  meanings: ReportView['meanings'],
  links: Links | null
): HTMLElement {
  const row = explained(
    cause,
    pill(cause.kind, cause.label, meanings),
    ' ',
    clip(cause.evidence, MOST_WORDS)
  );
  row.lastElementChild?.append(
    ...(links?.to(trans.__('Changes'), cause.changes) ?? []),
    ...(links?.to(trans.__('Rows'), cause.rows) ?? [])
  );
  links?.add(cause.id, TABS.causes, () => row);
  return row;
}

/** A share with its bar, what it is of, and what helps. */
export function explained(
  {
    share,
    share_ratio: ratio,
    advice,
    lab
  }: Pick<CauseView, 'share' | 'share_ratio' | 'advice' | 'lab'>,
  ...said: (Node | string)[]
): HTMLElement {
  return h(
    'li',
    {},
    h(
      'div',
      { class: 'wb-finding-share' },
      h('span', {}, clip(share, 20)),
      bar(ratio)
    ),
    h(
      'div',
      {},
      ...said,
      ' ',
      h('em', {}, clip(advice, MOST_WORDS), ...teacher(lab))
    )
  );
}

/** What each line of the cell took, beside its code; null if nobody asked. */
export function lineTable({
  lines
}: Pick<ReportView, 'lines'>): HTMLElement | null {
  return lines === null ? null : sortableTable(lines);
}

/** Tables side by side where there is room. */
export function tableNodes(
  tables: readonly ReportTable[],
  links: Links | null = null
): HTMLElement {
  const nodes = tables.map(table => sortableTable(table, links));
  return h('div', { class: 'wb-tables' }, ...nodes);
}

/** The figures behind the verdict, in groups; null where there are none. */
export function groupNodes({
  groups
}: Pick<ReportView, 'groups'>): HTMLElement | null {
  return groups.length === 0
    ? null
    : h('div', { class: 'wb-groups' }, ...groups.map(groupNode));
}

function groupNode(group: FigureGroup): HTMLElement {
  const title = clip(group.title, 80);
  return h(
    'section',
    { 'aria-label': title },
    h('h4', {}, title),
    h(
      'dl',
      {},
      ...pairs(group.figures).flatMap(([label, value]) => [
        h('dt', {}, label),
        h('dd', {}, value)
      ])
    )
  );
}

/** A verdict's kind, coloured, with what it means where that is known. */
export function pill(
  kind: string,
  label = kind,
  meanings: ReportView['meanings'] = {}
): HTMLElement {
  const title = clip(meanings[label] ?? '', 300);
  return h(
    'span',
    { class: 'wb-pill', 'data-kind': kind, ...(title === '' ? {} : { title }) },
    clip(label, 40)
  );
}

/** The lab that teaches the change; who hears of it opens it. */
export function teacher(lab: string | null): (Node | string)[] {
  if (lab === null) {
    return [];
  }
  const open = ({ currentTarget }: Event): void => {
    currentTarget?.dispatchEvent(
      new CustomEvent(ASK_FOR_LAB, { bubbles: true, detail: lab })
    );
  };
  return [
    ' Lab: ',
    h('button', { class: 'wb-link', click: open }, clip(lab, 80)),
    '.'
  ];
}

function pairs(rows: readonly LabelledFigure[]): [string, string][] {
  return rows.map(({ label, value }) => [clip(label, 100), clip(value, 400)]);
}
