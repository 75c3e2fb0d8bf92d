/** The gradebook's grid: moved in and selected, by keys and by the mouse. */

type Cell = HTMLTableCellElement;

/** What is selected, by lab: the learners. */
export type Selection = Record<string, string[]>;

const ROWS_A_FRAME = 50;

let anchor: Cell | null = null;

function grid(): HTMLTableElement | null {
  return document.querySelector<HTMLTableElement>('#gradebook');
}

/** Have the grid moved in and selected. */
export function watchGrid(): void {
  const table = grid();
  if (table === null) {
    return;
  }
  table.addEventListener('keydown', press);
  table.addEventListener('mousedown', event => {
    const cell = cellOf(event.target);
    // a link opens, and a head sorts
    if (cell === null || (event.target as Element).closest('a, button')) {
      return;
    }
    event.preventDefault();
    focus(cell);
    if (event.shiftKey && anchor !== null) {
      select(between(anchor, cell), true);
    } else {
      toggle(cell);
      anchor = cell;
    }
  });
  drawLater([...(table.tBodies[0]?.rows ?? [])]);
  document.getElementById('select-shown')?.addEventListener('click', all);
  document.getElementById('select-none')?.addEventListener('click', none);
  for (const name of ['find', 'state']) {
    // what is not seen is not acted on; rows are hidden by another listener before
    for (const kind of ['input', 'change']) {
      document.getElementById(name)?.addEventListener(kind, () => {
        select(
          selected().filter(cell => isHidden(cell)),
          false
        );
      });
    }
  }
  document.addEventListener('keydown', event => {
    const isTyped = (event.target as Element).closest(
      'input, textarea, select'
    );
    if (event.key === '?' && !isTyped) {
      document.querySelector<HTMLDialogElement>('#keys')?.showModal();
    }
  });
  document.addEventListener('click', event => {
    const button = (event.target as Element).closest(
      '[data-open], [data-close]'
    );
    const name = (button as HTMLElement | null)?.dataset['open'];
    if (name !== undefined) {
      document.querySelector<HTMLDialogElement>(`#${name}`)?.showModal();
    } else {
      button?.closest('dialog')?.close();
    }
  });
}

/**
 * Have rows laid out, some in each frame, so that those in view are seen at once. A
 * screen reader gets no cells of a row that was never laid out.
 */
export function drawLater(rows: readonly HTMLTableRowElement[]): void {
  for (const row of rows) {
    row.classList.remove('drawn');
  }
  const more = (from: number) => {
    for (const row of rows.slice(from, from + ROWS_A_FRAME)) {
      row.classList.add('drawn');
    }
    if (from < rows.length) {
      requestAnimationFrame(() => more(from + ROWS_A_FRAME));
    }
  };
  // once what is in view is on the screen
  requestAnimationFrame(() => requestAnimationFrame(() => more(0)));
}

/** Give what is selected. */
export function selection(): Selection {
  const chosen: Selection = {};
  for (const cell of selected()) {
    const lab = labOf(cell);
    const person = cell.closest('tr')?.dataset['person'];
    if (lab !== undefined && person !== undefined) {
      (chosen[lab] ??= []).push(person);
    }
  }
  return chosen;
}

function press(event: KeyboardEvent): void {
  const cell = cellOf(event.target);
  const step = STEPS[event.key];
  if (cell === null || event.altKey) {
    return;
  }
  const isCommand = event.ctrlKey || event.metaKey;
  if (step !== undefined) {
    const next = moved(cell, step, isCommand);
    focus(next);
    if (event.shiftKey) {
      anchor ??= cell;
      select(between(anchor, next), true);
    } else {
      anchor = next;
    }
  } else if (event.key === 'Enter') {
    cell.querySelector<HTMLElement>('a, button')?.click();
  } else if (event.key === ' ') {
    toggle(cell);
  } else if (event.key === 'Escape') {
    none();
  } else if (isCommand && event.key.toLowerCase() === 'a') {
    all();
  } else {
    return;
  }
  event.preventDefault();
}

/** How far each key goes: in rows and columns. */
const STEPS: Readonly<Record<string, readonly [number, number]>> = {
  ArrowUp: [-1, 0],
  ArrowDown: [1, 0],
  ArrowLeft: [0, -1],
  ArrowRight: [0, 1],
  Home: [0, -Infinity],
  End: [0, Infinity]
};

function moved(
  cell: Cell,
  [down, right]: readonly [number, number],
  isWhole: boolean
): Cell {
  const rows = shownRows();
  const from = rows.indexOf(cell.parentElement as HTMLTableRowElement);
  const far = isWhole && !Number.isFinite(right) ? right : down;
  const row = rows[clamp(from + far, rows.length)];
  const column = clamp(cell.cellIndex + right, row?.cells.length ?? 0);
  return row?.cells[column] ?? cell;
}

function clamp(place: number, length: number): number {
  return Math.min(Math.max(0, place), length - 1);
}

function shownRows(): HTMLTableRowElement[] {
  return [...(grid()?.rows ?? [])].filter(row => !row.hidden);
}

function focus(cell: Cell): void {
  for (const before of grid()?.querySelectorAll('[tabindex="0"]') ?? []) {
    before.removeAttribute('tabindex');
  }
  cell.tabIndex = 0;
  cell.focus();
}

/** Select a cell or not; on a head, its whole row or column. */
function toggle(cell: Cell): void {
  const cells = marks(reach(cell));
  const isOn = cells.every(one => one.ariaSelected === 'true');
  select(cells, !isOn);
}

function reach(cell: Cell): Cell[] {
  if (cell.closest('thead') !== null) {
    return shownRows().flatMap(row => row.cells[cell.cellIndex] ?? []);
  }
  const row = cell.parentElement as HTMLTableRowElement;
  return cell.tagName === 'TH' ? [...row.cells] : [cell];
}

function all(): void {
  const state = document.querySelector<HTMLSelectElement>('#state')?.value;
  const cells = marks(shownRows().flatMap(row => [...row.cells]));
  select(
    cells.filter(cell => !state || cell.classList.contains(state)),
    true
  );
}

function none(): void {
  select(selected(), false);
}

function between(first: Cell, last: Cell): Cell[] {
  const rows = shownRows();
  const [top, bottom] = [first, last]
    .map(cell => rows.indexOf(cell.parentElement as HTMLTableRowElement))
    .sort((one, other) => one - other);
  const [left, right] = [first.cellIndex, last.cellIndex].sort(
    (one, other) => one - other
  );
  return marks(
    rows
      .slice(top, (bottom ?? 0) + 1)
      .flatMap(row => [...row.cells].slice(left, (right ?? 0) + 1))
  );
}

/** Leave out what is no learner's mark of a lab. */
function marks(cells: readonly Cell[]): Cell[] {
  return cells.filter(
    cell =>
      cell.tagName === 'TD' &&
      labOf(cell) !== undefined &&
      !cell.classList.contains('none')
  );
}

function labOf(cell: Cell): string | undefined {
  return grid()?.tHead?.rows[0]?.cells[cell.cellIndex]?.dataset['publication'];
}

function selected(): Cell[] {
  return [...(grid()?.querySelectorAll<Cell>('[aria-selected="true"]') ?? [])];
}

function isHidden(cell: Cell): boolean {
  return cell.closest('tr')?.hidden === true;
}

function select(cells: readonly Cell[], isOn: boolean): void {
  for (const cell of cells) {
    if (isOn) {
      cell.setAttribute('aria-selected', 'true');
    } else {
      cell.removeAttribute('aria-selected');
    }
  }
  const place = document.getElementById('selected');
  if (place !== null) {
    const chosen = selected();
    const people = new Set(chosen.map(cell => cell.closest('tr'))).size;
    place.textContent =
      chosen.length === 0
        ? 'Nothing is selected'
        : `Selected: ${chosen.length} (learners: ${people})`;
  }
}

function cellOf(target: EventTarget | null): Cell | null {
  return (target as Element).closest<Cell>('td, th');
}
