/** Two runs beside one another: this cell's run before, or any that a person picks. */

import { h } from '../../core/dom';
import { clip, when } from '../../core/format';
import type { CellReport, Comparison } from '../../shapes/protocol';
import { StatusLine } from '../../core/status';
import { trans } from '../../core/translation';
import { tableNodes } from './report_parts';
import { whose } from './whose';

export interface DifferenceActions {
  /** The other reports of the list. */
  readonly others: readonly CellReport[];
  /** Ask the server what differs between this report and another. */
  readonly compare: (other: CellReport) => Promise<Comparison>;
  /** Lets a person choose a trace file, and reads it; null where nobody can. */
  readonly chooseFile: (() => Promise<CellReport | null>) | null;
}

/** What the report can be compared with, and the comparison below. */
export function comparePart(
  report: CellReport,
  actions: DifferenceActions
): HTMLElement | null {
  if (!canCompare(actions)) {
    return null;
  }
  const place = h('div', { class: 'wb-difference' });
  return h(
    'section',
    { 'aria-label': 'Compare' },
    picker(report, actions, place),
    place
  );
}

/**
 * The comparison with the run before, if there was one, and a way to others.
 * @param report - is compared
 * @param actions - of the way to others; null where that is elsewhere
 */
export function differencePart(
  report: CellReport,
  actions: DifferenceActions | null
): HTMLElement | null {
  const { difference } = report;
  const others = actions !== null && canCompare(actions) ? actions : null;
  if (difference === null && others === null) {
    return null;
  }
  const place = h('div', { class: 'wb-difference' });
  if (difference !== null) {
    place.append(
      runsNode(trans.__("the cell's run before"), runWords(report)),
      ...comparisonNodes(difference)
    );
  }
  return h(
    'section',
    { class: 'wb-card', 'aria-label': 'Comparison' },
    h(
      'h4',
      {},
      difference === null ? 'Compare' : "Against the cell's run before"
    ),
    others === null ? null : picker(report, others, place),
    place
  );
}

function canCompare({ others, chooseFile }: DifferenceActions): boolean {
  return others.length > 0 || chooseFile !== null;
}

function picker(
  report: CellReport,
  { others, compare, chooseFile }: DifferenceActions,
  place: HTMLElement
): HTMLElement {
  // of a cell that runs there is no profile yet
  const newestFirst = others
    .filter(({ status }) => status !== 'running')
    .sort((one, other) => other.started_ms - one.started_ms);
  const select = h(
    'select',
    { class: 'wb-select', change: () => void show() },
    h('option', { value: '' }, 'another report…'),
    ...newestFirst.map(({ id, started_ms: startedMs, title }) =>
      h('option', { value: id }, `${when(startedMs)}  ${clip(title, 60)}`)
    )
  );

  async function show(): Promise<void> {
    const other = others.find(({ id }) => id === select.value);
    if (other !== undefined) {
      await tell(() => compared(other));
    }
  }

  async function choose(
    chosen: () => Promise<CellReport | null>
  ): Promise<void> {
    select.value = '';
    await tell(async () => {
      const other = await chosen();
      return other === null ? null : compared(other);
    });
  }

  async function compared(other: CellReport): Promise<Node[]> {
    const comparison = await compare(other);
    // as the server does: the older run is the one before
    const [before, now] =
      other.started_ms < report.started_ms ? [other, report] : [report, other];
    return [
      runsNode(runWords(before), runWords(now)),
      ...comparisonNodes(comparison)
    ];
  }

  /** Show what is asked for, unless something else was meanwhile. */
  async function tell(ask: () => Promise<Node[] | null>): Promise<void> {
    const waits = new StatusLine('Asking the server…').node;
    place.replaceChildren(waits);
    let nodes: Node[];
    try {
      nodes = (await ask()) ?? [];
    } catch (error) {
      const words = (error as Error).message;
      nodes = [h('p', { class: 'wb-warning', role: 'alert' }, words)];
    }
    if (waits.parentNode === place) {
      place.replaceChildren(...nodes);
    }
  }

  return h(
    'div',
    { class: 'wb-controls' },
    others.length === 0
      ? 'Compare with'
      : h('label', { class: 'wb-controls' }, 'Compare with', select),
    chooseFile === null
      ? null
      : h(
          'button',
          { class: 'wb-button', click: () => void choose(chooseFile) },
          'A trace file…'
        )
  );
}

/** Say which run the columns "Before" and "Now" are of. */
function runsNode(before: string, now: string): HTMLElement {
  return h(
    'p',
    { class: 'wb-note' },
    trans.__('Before: %1. Now: %2.', before, now)
  );
}

/** Name a run with its time: "train.ipynb [7]: fit(), 13:03:45". */
function runWords(report: CellReport): string {
  const title = clip(report.title, 60);
  const isFile = typeof report.file === 'string';
  const name = isFile ? title : `${whose(report)}: ${title}`;
  return `${name}, ${when(report.started_ms)}`;
}

/** What differs: in words, then figure by figure, the largest change first. */
export function comparisonNodes({
  sentence,
  cautions,
  notes,
  tables
}: Comparison): Node[] {
  return [
    h('p', {}, h('strong', {}, clip(sentence, 1000))),
    ...cautions.map(words => h('p', { class: 'wb-warning' }, clip(words, 400))),
    ...notes.map(words => h('p', { class: 'wb-note' }, clip(words, 400))),
    tableNodes(tables)
  ];
}
