/** Tables that a person can sort by any column, with mouse or keyboard. */

import { h } from '../../core/dom';
import { clip } from '../../core/format';
import { nameAttributes, nameCell, scrolled } from '../../core/table';
import { trans } from '../../core/translation';
import type { ReportTable, RowLinks, TableCell } from '../../shapes/protocol';
import type { Links } from './links';
import { TABS } from './links';
import { slicesLink } from '../../timeline/slices';

/** More rows than these are shown when they are asked for. */
const MOST_ROWS = 10;
const MOST_FIGURE = 64;
const MOST_CODE = 400;

type Row = readonly TableCell[];

/** A table whose first column is a name and whose others are figures. */
export function sortableTable(
  { title, name, header, rows, is_code: isCode, links: ofRows }: ReportTable,
  links: Links | null = null
): HTMLElement {
  const linksOf = new Map<Row, RowLinks | undefined>(
    rows.map((row, at) => [row, ofRows[at]])
  );
  const shown = new Map<Row, HTMLElement>();
  const arePart = ofRows.some(
    ({ causes, changes, stalls }) =>
      causes.length + changes.length + stalls.length > 0
  );
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
  if (links !== null && arePart) {
    headCells.push(h('th', { scope: 'col' }, trans.__('Part of')));
  }
  const more = h('button', { class: 'wb-link', click: () => writeAll() });
  linksOf.forEach((of, row) => {
    if (of !== undefined) {
      links?.add(of.id, TABS.tables, () => {
        writeAll();
        return shown.get(row);
      });
    }
  });

  function writeAll(): void {
    most = Infinity;
    write();
  }

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
    shown.clear();
    for (const row of order.slice(0, most)) {
      shown.set(
        row,
        tableRow(row, linksOf.get(row), links, { arePart, isCode })
      );
    }
    body.replaceChildren(...shown.values());
    more.hidden = rows.length <= most;
    more.textContent = `all ${rows.length}`;
  }

  write();
  return scrolled(
    h(
      'table',
      { class: isCode ? 'wb-table wb-code' : 'wb-table' },
      h('caption', {}, `${clip(title, 100)} `, more),
      h('thead', {}, h('tr', {}, ...headCells)),
      body
    )
  );
}

/**
 * @param of - what the row belongs to
 * @param links - of the report
 * @param table.arePart - rows of this table are part of causes, or of changes
 * @param table.isCode - the names are lines of code
 */
function tableRow(
  cells: Row,
  of: RowLinks | undefined,
  links: Links | null,
  { arePart, isCode }: { arePart: boolean; isCode: boolean }
): HTMLTableRowElement {
  const row = h(
    'tr',
    {},
    ...cells.map(({ text, bar: length }, column) => {
      const below = length > 0 ? bar(length) : null;
      return column > 0
        ? h('td', { class: 'wb-figure-cell' }, clip(text, MOST_FIGURE), below)
        : isCode
          ? codeCell(text)
          : nameCell(text, below);
    })
  );
  if (links?.hasSlices === true && of !== undefined && of.slice !== '') {
    row.cells[0]?.append(' ', slicesLink(of.slice));
  }
  if (links !== null && arePart) {
    row.append(
      h(
        'td',
        {},
        ...links.to(trans.__('Cause'), of?.causes ?? []),
        ...links.to(trans.__('Change'), of?.changes ?? []),
        ...links.to(trans.__('Stalls'), of === undefined ? [] : [of.stalls])
      )
    );
  }
  return row;
}

/** Known by its beginning, where there is no room for all of it. */
function codeCell(text: string): HTMLTableCellElement {
  const code = clip(text, MOST_CODE);
  return h('td', nameAttributes(code), code);
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
