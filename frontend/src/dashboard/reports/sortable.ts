/** Tables that a person can sort by any column, with mouse or keyboard. */

import { h } from '../../core/dom';
import { clip } from '../../core/format';
import type { ReportTable, TableCell } from '../../shapes/protocol';

/** More rows than these are shown when they are asked for. */
const MOST_ROWS = 10;
const MOST_NAME = 64;
const MOST_CODE = 200;
const MOST_TITLE = 2000;

type Row = readonly TableCell[];

/** A table whose first column is a name and whose others are figures. */
export function sortableTable({
  title,
  name,
  header,
  rows,
  is_code: isCode
}: ReportTable): HTMLTableElement {
  let sorted: { column: number; descending: boolean } | null = null;
  let most = isCode ? Infinity : MOST_ROWS;
  const body = h('tbody');
  const headCells = [name, ...header].map((head, column) =>
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
    const first = hasValues(rows, column);
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
    body.replaceChildren(
      ...order.slice(0, most).map(row => tableRow(row, isCode))
    );
    more.hidden = rows.length <= most;
    more.textContent = `all ${rows.length}`;
  }

  write();
  return h(
    'table',
    { class: isCode ? 'wb-table wb-code' : 'wb-table' },
    h('caption', {}, `${clip(title, 100)} `, more),
    h('thead', {}, h('tr', {}, ...headCells)),
    body
  );
}

function tableRow(cells: Row, isCode: boolean): HTMLTableRowElement {
  const most = isCode ? MOST_CODE : MOST_NAME;
  return h(
    'tr',
    {},
    ...cells.map(({ text, bar: length }, column) =>
      column === 0
        ? nameCell(text, most, length)
        : h(
            'td',
            { class: 'wb-figure-cell' },
            clip(text, MOST_NAME),
            length > 0 ? bar(length) : null
          )
    )
  );
}

/** A name that may be thousands of characters of C++: short, whole on hover. */
function nameCell(
  text: string,
  most: number,
  length: number
): HTMLTableCellElement {
  const isCut = text.length > most;
  return h(
    'td',
    isCut ? { title: clip(text, MOST_TITLE) } : {},
    isCut ? ends(text, most) : text,
    length > 0 ? bar(length) : null
  );
}

/** A bar as long as a share of its place. */
export function bar(ratio: number): HTMLElement {
  const node = h('div', { class: 'wb-length' });
  node.style.width = `${(Math.min(Math.max(ratio, 0), 1) * 100).toFixed(1)}%`;
  return node;
}

function hasValues(rows: readonly Row[], column: number): boolean {
  return rows.some(row => typeof row[column]?.value === 'number');
}

function inOrder(
  rows: readonly Row[],
  { column, descending }: { column: number; descending: boolean }
): Row[] {
  const isOfTexts = !hasValues(rows, column);
  const value = (row: Row) =>
    (isOfTexts ? row[column]?.text : row[column]?.value) ?? null;
  const sign = descending ? -1 : 1;
  return [...rows].sort((one, other) => {
    const [a, b] = [value(one), value(other)];
    if (a === null || b === null) {
      return Number(a === null) - Number(b === null);
    }
    return sign * (a < b ? -1 : Number(a > b));
  });
}

/** Cut text in its middle: a path, or a kernel, is known by both its ends. */
function ends(value: string, most: number): string {
  const tail = Math.floor(most / 2);
  return `${value.slice(0, most - tail - 1)}…${value.slice(-tail)}`;
}
