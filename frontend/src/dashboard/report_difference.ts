/** Two runs beside one another: this cell's run before, or any that a person picks. */

import { h } from '../dom';
import { clip, when, count, duration, NONE } from '../format';
import type { CellReport, Comparison, Pair } from '../protocol';
import type { Cell } from './sortable';
import { name, sortableTable, time } from './sortable';

export interface DifferenceActions {
  /** The other reports of the list. */
  readonly others: readonly CellReport[];
  /** Ask the server what differs between this report and another. */
  readonly compare: (other: CellReport) => Promise<Comparison>;
}

/** The comparison with the run before, if there was one, and a way to others. */
export function differencePart(
  report: CellReport,
  { others, compare }: DifferenceActions
): HTMLElement | null {
  const { difference } = report;
  if (difference === null && others.length === 0) {
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
    others.length === 0 ? null : picker(others, compare, place),
    place
  );
}

function picker(
  others: readonly CellReport[],
  compare: (other: CellReport) => Promise<Comparison>,
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
    const asked = select.value;
    const other = others.find(({ id }) => id === asked);
    if (other === undefined) {
      return;
    }
    place.replaceChildren(h('p', { role: 'status' }, 'Asking the server…'));
    let told: Node[];
    try {
      told = comparisonNodes(await compare(other));
    } catch (error) {
      const words = (error as Error).message;
      told = [h('p', { class: 'wb-warning', role: 'alert' }, words)];
    }
    if (select.value === asked) {
      place.replaceChildren(...told);
    }
  }

  return h('label', { class: 'wb-controls' }, 'Compare with', select);
}

/** What differs: in words, then figure by figure, the largest change first. */
export function comparisonNodes(comparison: Comparison): Node[] {
  const { sentence, cautions, notes, wall, causes } = comparison;
  const tables: [string, string, readonly Pair[]][] = [
    ['Whole', 'Figure', [wall, ...causes]],
    ['GPU work by operators', 'Operators', comparison.paths],
    ['Kernels', 'Kernel', comparison.kernels],
    ['Operators on the host, own time', 'Operator', comparison.operators]
  ];
  return [
    h('p', {}, h('strong', {}, clip(sentence, 1000))),
    ...cautions.map(words => h('p', { class: 'wb-warning' }, clip(words, 400))),
    ...notes.map(words => h('p', { class: 'wb-note' }, clip(words, 400))),
    h(
      'div',
      { class: 'wb-tables' },
      ...tables
        .filter(([, , changes]) => changes.length > 0)
        .map(([caption, head, changes]) => changeTable(caption, head, changes))
    )
  ];
}

function changeTable(
  caption: string,
  head: string,
  changes: readonly Pair[]
): HTMLElement {
  const hasCalls = changes.some(
    each => each.before_calls !== null || each.after_calls !== null
  );
  return sortableTable({
    caption,
    heads: [head, 'Before', 'Now', 'Change', ...(hasCalls ? ['Calls'] : [])],
    rows: changes.map(each => [
      name(each.name),
      time(each.before_ms),
      time(each.after_ms),
      change(each),
      ...(hasCalls ? [calls(each)] : [])
    ])
  });
}

/** How much more it takes now; what is not there takes nothing. */
function change({ before_ms: before, after_ms: after }: Pair): Cell {
  if (before === null && after === null) {
    return { text: NONE, value: null };
  }
  const value = (after ?? 0) - (before ?? 0);
  const sign = value < 0 ? '−' : '+';
  return { text: `${sign}${duration(Math.abs(value))}`, value };
}

function calls({ before_calls: before, after_calls: after }: Pair): Cell {
  const [was, now] = [before ?? 0, after ?? 0];
  const text = was === now ? count(now) : `${count(was)} → ${count(now)}`;
  return { text, value: now - was };
}
