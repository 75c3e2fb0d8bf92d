/** The class's table: found, sorted, and changed row by row as things happen. */

import { drawLater } from './gradebook_grid';
import { when } from './times';

/** A row, as the service tells it. */
export interface Row {
  person: string;
  name: string;
  section: string;
  state: string;
  state_words: string;
  sign: string;
  attempts: number;
  right: string;
  error: string;
  last_ms: number | null;
  gpu: string;
  energy: string;
  stuck: string;
}

/** Have a table found in and sorted. */
export function watchTable(): void {
  document.getElementById('find')?.addEventListener('input', filter);
  document.getElementById('only-stuck')?.addEventListener('change', filter);
  document.getElementById('state')?.addEventListener('change', filter);
  for (const button of document.querySelectorAll<HTMLElement>('button.sort')) {
    button.addEventListener('click', () => sortBy(button));
  }
}

/** Show rows as they are now. */
export function changeRows(rows: readonly Row[]): void {
  for (const row of rows) {
    const element = document.getElementById(`row-${row.person}`);
    if (element !== null) {
      changeRow(element, row);
    }
    const square = document.querySelector(`#map [data-person="${row.person}"]`);
    if (square !== null) {
      square.className = classes(row);
      square.textContent = row.sign;
      square.setAttribute(
        'title',
        `${row.name}: ${row.state_words}${row.stuck === '' ? '' : ', stuck'}`
      );
    }
  }
  tally();
  filter();
}

function changeRow(element: HTMLElement, row: Row): void {
  element.className = classes(row);
  put(element, 'section', row.section);
  put(element, 'state_words', row.state_words, '.text');
  put(element, 'state_words', row.sign, '.sign');
  put(element, 'stuck', row.stuck);
  put(element, 'error', row.error);
  put(element, 'attempts', row.attempts === 0 ? '' : `${row.attempts}`);
  put(element, 'right', row.right);
  put(element, 'last_ms', when(row.last_ms));
  put(element, 'gpu', row.gpu);
  put(element, 'energy', row.energy);
  const last = element.querySelector<HTMLElement>('[data-key=last_ms]');
  if (last !== null) {
    last.dataset['ms'] = `${row.last_ms ?? 0}`;
  }
  // drawn once, then begun anew
  element.classList.remove('changed');
  requestAnimationFrame(() => element.classList.add('changed'));
}

function put(row: HTMLElement, key: string, text: string, within = ''): void {
  const cell = row.querySelector(`[data-key=${key}] ${within}`.trim());
  if (cell !== null && cell.textContent !== text) {
    cell.textContent = text;
  }
}

function classes(row: Row): string {
  return row.stuck === '' ? row.state : `${row.state} stuck`;
}

function tally(): void {
  for (const place of document.querySelectorAll<HTMLElement>('[data-tally]')) {
    const name = place.dataset['tally'] ?? '';
    const count = document.querySelectorAll(`#class tbody tr.${name}`).length;
    place.textContent = `${count}`;
  }
}

function filter(): void {
  const find = document.getElementById('find') as HTMLInputElement | null;
  const only = document.getElementById('only-stuck') as HTMLInputElement | null;
  const state = document.getElementById('state') as HTMLSelectElement | null;
  const wanted = (find?.value ?? '').trim().toLowerCase();
  const rows = document.querySelectorAll<HTMLElement>(
    '#class tbody tr, #people tbody tr, #gradebook tbody tr'
  );
  for (const row of rows) {
    const isStuck = row.classList.contains('stuck');
    const text = (row.dataset['find'] ?? row.textContent ?? '').toLowerCase();
    row.hidden =
      !text.includes(wanted) ||
      (only?.checked === true && !isStuck) ||
      (!!state?.value && row.querySelector(`td.${state.value}`) === null);
  }
}

function sortBy(button: HTMLElement): void {
  const head = button.closest('th');
  const body = button.closest('table')?.tBodies[0];
  if (head === null || body === undefined) {
    return;
  }
  const isUp = head.getAttribute('aria-sort') !== 'ascending';
  for (const other of head.parentElement?.children ?? []) {
    other.setAttribute('aria-sort', 'none');
  }
  head.setAttribute('aria-sort', isUp ? 'ascending' : 'descending');
  const order = new Intl.Collator(undefined, { numeric: true });
  const rows = [...body.rows].map(row => {
    const text = shown(row.cells[head.cellIndex]);
    return { row, text, value: text === '' ? NaN : Number(text) };
  });
  rows.sort((first, second) => {
    // what has no value is last, whatever the order
    if (first.text === '' || second.text === '') {
      return Number(first.text === '') - Number(second.text === '');
    }
    const difference = first.value - second.value;
    const compared = Number.isNaN(difference)
      ? order.compare(first.text, second.text)
      : difference;
    return isUp ? compared : -compared;
  });
  const sorted = rows.map(({ row }) => row);
  if (body.closest('#gradebook') !== null) {
    drawLater(sorted);
  }
  body.append(...sorted);
}

/** Give what a cell is sorted by: of a mark its points, where it has any. */
function shown(cell: HTMLTableCellElement | undefined): string {
  if (cell?.closest('#gradebook') && cell.classList.length > 0) {
    const points = cell.firstChild?.textContent ?? '';
    return Number.isNaN(Number(points)) ? '' : points;
  }
  return cell?.dataset['ms'] ?? cell?.textContent?.trim() ?? '';
}
