/** Two runs beside one another: this cell's run before, or any that a person picks. */

import { h } from '../../core/dom';
import { clip, when } from '../../core/format';
import type { CellReport, Comparison } from '../../shapes/protocol';
import { StatusLine } from '../../core/status';
import { trans } from '../../core/translation';
import { tableNodes, timeBar } from './report_parts';
import { whose } from './whose';

export interface DifferenceActions {
  /** The other reports of the list. */
  readonly others: readonly CellReport[];
  /** Ask the server what differs between two runs. */
  readonly compare: (
    before: CellReport,
    after: CellReport
  ) => Promise<Comparison>;
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
  const runs = [report, ...others]
    .filter(({ status }) => status !== 'running')
    .sort((one, other) => other.started_ms - one.started_ms);
  const before = chooser(trans.__('Before'), runs, '');
  const after = chooser(trans.__('After'), runs, report.id);

  function chosen(select: HTMLSelectElement): CellReport | undefined {
    return runs.find(({ id }) => id === select.value);
  }

  /** Nothing as long as one of the two is not chosen. */
  async function compared(): Promise<Node[]> {
    const [was, now] = [chosen(before), chosen(after)];
    if (was === undefined || now === undefined) {
      return [];
    }
    if (was === now) {
      const words = trans.__('Before and After are the same report.');
      return [h('p', { class: 'wb-note' }, words)];
    }
    const comparison = await compare(was, now);
    return [
      runsNode(runWords(was), runWords(now)),
      ...comparisonNodes(comparison)
    ];
  }

  function swap(): void {
    [before.value, after.value] = [after.value, before.value];
    void tell(compared);
  }

  /** A file takes the place that is free, else that of the run before. */
  async function choose(
    chosenFile: () => Promise<CellReport | null>
  ): Promise<void> {
    const shown = [...place.childNodes];
    await tell(async () => {
      const file = await chosenFile();
      if (file === null) {
        return shown;
      }
      add(file);
      (after.value === '' ? after : before).value = file.id;
      return compared();
    });
  }

  function add(file: CellReport): void {
    if (!runs.some(({ id }) => id === file.id)) {
      runs.push(file);
      before.append(option(file));
      after.append(option(file));
    }
  }

  /** Show what is asked for, unless something else was meanwhile. */
  async function tell(ask: () => Promise<Node[]>): Promise<void> {
    const waits = new StatusLine('Asking the server…').node;
    place.replaceChildren(waits);
    let nodes: Node[];
    try {
      nodes = await ask();
    } catch (error) {
      const words = (error as Error).message;
      nodes = [h('p', { class: 'wb-warning', role: 'alert' }, words)];
    }
    if (waits.parentNode === place) {
      place.replaceChildren(...nodes);
    }
  }

  for (const select of [before, after]) {
    select.addEventListener('change', () => void tell(compared));
  }
  return h(
    'div',
    { class: 'wb-controls' },
    h('label', { class: 'wb-controls' }, trans.__('Before'), before),
    h(
      'button',
      {
        class: 'wb-button',
        title: trans.__('Exchange the run before and the run after'),
        click: swap
      },
      trans.__('Swap')
    ),
    h('label', { class: 'wb-controls' }, trans.__('After'), after),
    chooseFile === null
      ? null
      : h(
          'button',
          { class: 'wb-button', click: () => void choose(chooseFile) },
          trans.__('A trace file…')
        )
  );
}

function chooser(
  name: string,
  runs: readonly CellReport[],
  value: string
): HTMLSelectElement {
  const select = h(
    'select',
    { class: 'wb-select', 'aria-label': name },
    h('option', { value: '' }, trans.__('choose a report…')),
    ...runs.map(option)
  );
  select.value = value;
  return select;
}

function option({ id, started_ms: startedMs, title }: CellReport): HTMLElement {
  return h('option', { value: id }, `${when(startedMs)}  ${clip(title, 60)}`);
}

/** Say which runs the bars and columns are of. */
function runsNode(before: string, after: string): HTMLElement {
  return h(
    'p',
    { class: 'wb-note' },
    trans.__('Before: %1. After: %2.', before, after)
  );
}

/** Name a run with its time: "train.ipynb [7]: fit(), 13:03:45". */
function runWords(report: CellReport): string {
  const title = clip(report.title, 60);
  const isFile = typeof report.file === 'string';
  const name = isFile ? title : `${whose(report)}: ${title}`;
  return `${name}, ${when(report.started_ms)}`;
}

/** What differs: in words, as two bars, then figure by figure. */
export function comparisonNodes({
  sentence,
  cautions,
  bars,
  notes,
  tables
}: Comparison): Node[] {
  return [
    h('p', {}, h('strong', {}, clip(sentence, 1000))),
    ...cautions.map(words => h('p', { class: 'wb-warning' }, clip(words, 400))),
    ...bars.map(bar => timeBar(bar)),
    ...notes.map(words => h('p', { class: 'wb-note' }, clip(words, 400))),
    tableNodes(tables)
  ];
}
