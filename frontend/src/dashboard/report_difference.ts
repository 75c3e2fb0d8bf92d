/** Two runs beside one another: this cell's run before, or any that a person picks. */

import { h } from '../dom';
import { clip, when } from '../format';
import type { CellReport, Comparison } from '../protocol';
import { tableNodes } from './report_parts';

export interface DifferenceActions {
  /** The other reports of the list. */
  readonly others: readonly CellReport[];
  /** Ask the server what differs between this report and another. */
  readonly compare: (other: CellReport) => Promise<Comparison>;
  /** Lets a person choose a trace file, and reads it; null where nobody can. */
  readonly chooseFile: (() => Promise<CellReport | null>) | null;
}

/** What the report can be compared with, and the comparison below. */
export function comparePart(actions: DifferenceActions): HTMLElement | null {
  if (!canCompare(actions)) {
    return null;
  }
  const place = h('div', { class: 'wb-difference' });
  return h(
    'section',
    { 'aria-label': 'Compare' },
    picker(actions, place),
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
    place.append(...comparisonNodes(difference));
  }
  return h(
    'section',
    { class: 'wb-card', 'aria-label': 'Comparison' },
    h(
      'h4',
      {},
      difference === null ? 'Compare' : "Against the cell's run before"
    ),
    others === null ? null : picker(others, place),
    place
  );
}

function canCompare({ others, chooseFile }: DifferenceActions): boolean {
  return others.length > 0 || chooseFile !== null;
}

function picker(
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
      await tell(() => compare(other));
    }
  }

  async function choose(
    chosen: () => Promise<CellReport | null>
  ): Promise<void> {
    select.value = '';
    await tell(async () => {
      const other = await chosen();
      return other === null ? null : compare(other);
    });
  }

  /** Show what is asked for, unless something else was meanwhile. */
  async function tell(ask: () => Promise<Comparison | null>): Promise<void> {
    const waits = h('p', { role: 'status' }, 'Asking the server…');
    place.replaceChildren(waits);
    let told: Node[];
    try {
      const comparison = await ask();
      told = comparison === null ? [] : comparisonNodes(comparison);
    } catch (error) {
      const words = (error as Error).message;
      told = [h('p', { class: 'wb-warning', role: 'alert' }, words)];
    }
    if (waits.parentNode === place) {
      place.replaceChildren(...told);
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
