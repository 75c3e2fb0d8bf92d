/** Tables that a person can sort by any column, with mouse or keyboard. */

import { h } from '../dom';
import { clip, count, duration, NONE, share, text } from '../format';

/** More rows than these are shown when they are asked for. */
const MOST_ROWS = 10;
const MOST_NAME = 64;

export interface Cell {
  readonly text: string;
  /** What it is sorted by; null, not known, comes last. */
  readonly value: number | string | null;
  /** The whole of a text that is cut. */
  readonly whole?: string;
  /** How long the bar below it is, 0 to 1. */
  readonly bar?: number;
}

export interface Sortable {
  readonly caption: string;
  readonly heads: readonly string[];
  readonly rows: readonly (readonly Cell[])[];
  /** Its first column is source code, in its order: all of it is shown. */
  readonly isCode?: boolean;
}

/** A table whose first column is a name and whose others are figures. */
export function sortableTable({
  caption,
  heads,
  rows,
  isCode = false
}: Sortable): HTMLTableElement {
  let sorted: { column: number; descending: boolean } | null = null;
  let most = isCode ? Infinity : MOST_ROWS;
  const body = h('tbody');
  const headCells = heads.map((head, column) =>
    h(
      'th',
      { scope: 'col', ...(column > 0 ? { class: 'wb-figure-cell' } : {}) },
      h('button', { class: 'wb-sort', click: () => sort(column) }, head)
    )
  );
  const more = h('button', {
    class: 'wb-link',
    click: () => {
      most = Infinity;
      write();
    }
  });

  function sort(column: number): void {
    // figures the largest first, names from A to Z; once more turns it round
    const first = typeof rows[0]?.[column]?.value === 'number';
    const again = sorted?.column === column;
    sorted = { column, descending: again ? !sorted?.descending : first };
    write();
  }

  function write(): void {
    const order = sorted === null ? rows : inOrder(rows, sorted);
    headCells.forEach((head, column) => {
      if (sorted?.column === column) {
        head.setAttribute(
          'aria-sort',
          sorted.descending ? 'descending' : 'ascending'
        );
      } else {
        head.removeAttribute('aria-sort');
      }
    });
    body.replaceChildren(...order.slice(0, most).map(tableRow));
    more.hidden = rows.length <= most;
    more.textContent = `all ${rows.length}`;
  }

  write();
  return h(
    'table',
    { class: isCode ? 'wb-table wb-code' : 'wb-table' },
    h('caption', {}, `${caption} `, more),
    h('thead', {}, h('tr', {}, ...headCells)),
    body
  );
}

function tableRow(cells: readonly Cell[]): HTMLTableRowElement {
  return h(
    'tr',
    {},
    ...cells.map((cell, column) =>
      h(
        'td',
        {
          ...(column > 0 ? { class: 'wb-figure-cell' } : {}),
          ...(cell.whole === undefined ? {} : { title: cell.whole })
        },
        cell.text,
        cell.bar ? bar(cell.bar) : null
      )
    )
  );
}

/** A bar as long as a share of its place. */
export function bar(ratio: number): HTMLElement {
  const node = h('div', { class: 'wb-length' });
  node.style.width = `${(Math.min(Math.max(ratio, 0), 1) * 100).toFixed(1)}%`;
  return node;
}

function inOrder(
  rows: readonly (readonly Cell[])[],
  { column, descending }: { column: number; descending: boolean }
): (readonly Cell[])[] {
  const value = (row: readonly Cell[]) => row[column]?.value ?? null;
  const sign = descending ? -1 : 1;
  return [...rows].sort((one, other) => {
    const [a, b] = [value(one), value(other)];
    if (a === null || b === null) {
      return Number(a === null) - Number(b === null);
    }
    return sign * (a < b ? -1 : Number(a > b));
  });
}

/** A name that may be thousands of characters of C++: short, whole on hover. */
export function name(value: string): Cell {
  return value.length <= MOST_NAME
    ? { text: value, value }
    : { text: ends(value, MOST_NAME), value, whole: clip(value, 2000) };
}

export function words(value: string): Cell {
  return { text: clip(value, 40), value };
}

export function number(value: number | null): Cell {
  return { text: value === null ? NONE : count(value), value };
}

export function time(ms: number | null): Cell {
  return { text: duration(ms), value: ms };
}

export function timeNs(ns: number | null): Cell {
  return time(ns === null ? null : ns / 1e6);
}

export function ratio(value: number | null): Cell {
  return { text: share(value), value };
}

export function size(bytes: number | null): Cell {
  return { text: text(bytes, 'bytes'), value: bytes };
}

/** Cut text in its middle: a path, or a kernel, is known by both its ends. */
function ends(value: string, most: number): string {
  const tail = Math.floor(most / 2);
  return `${value.slice(0, most - tail - 1)}…${value.slice(-tail)}`;
}
