/** Tables and rows of figures, the same in every card. */

import { h } from './dom';
import { clip } from './format';

/** A table shows so many rows at most; its caption says how many there are. */
const MOST_ROWS = 20;
/** A column of names has room for so many letters, as `html_table.py` has it. */
const LEAST_LETTERS = 24;
const END_LETTERS = 10;
const MOST_LETTERS = 2000;

export type Row = readonly (string | Node)[];

/** Let a table scroll in its place, so that the page does not. */
export function scrolled(table: HTMLTableElement): HTMLElement {
  return h('div', { class: 'wb-scroll' }, table);
}

/** Of a cell with a name that may be cut: all of it, for pointer, focus and reader. */
export function nameAttributes(name: string): Record<string, string> {
  return name.length <= LEAST_LETTERS
    ? {}
    : { tabindex: '0', title: name, 'aria-label': name };
}

/** A name by both its ends, which are what is shown where there is no room. */
export function nameNodes(name: string): (Node | string)[] {
  return name.length <= LEAST_LETTERS
    ? [name]
    : [
        h('span', { class: 'wb-begin' }, name.slice(0, -END_LETTERS)),
        name.slice(-END_LETTERS)
      ];
}

/** A cell of the first column; a name may be thousands of letters of C++. */
export function nameCell(
  text: string,
  below: Node | null = null
): HTMLTableCellElement {
  const name = clip(text, MOST_LETTERS);
  return h('td', nameAttributes(name), ...nameNodes(name), below);
}

/** A table whose first column is words and whose others are figures. */
export function table(
  caption: string,
  heads: readonly string[],
  rows: readonly Row[],
  mostRows = MOST_ROWS
): HTMLElement {
  const cell = (value: string | Node, column: number) =>
    column > 0
      ? h('td', { class: 'wb-figure-cell' }, value)
      : typeof value === 'string'
        ? nameCell(value)
        : h('td', { title: value.textContent ?? '' }, value);
  const more = rows.length - mostRows;
  return scrolled(
    h(
      'table',
      { class: 'wb-table' },
      h('caption', {}, more > 0 ? `${caption} (${more} more)` : caption),
      h(
        'thead',
        {},
        h(
          'tr',
          {},
          ...heads.map((head, column) =>
            h('th', column > 0 ? { class: 'wb-figure-cell' } : {}, head)
          )
        )
      ),
      h(
        'tbody',
        {},
        ...rows.slice(0, mostRows).map(row => h('tr', {}, ...row.map(cell)))
      )
    )
  );
}

/** Names with one figure each, side by side. */
export function figures(rows: readonly (readonly [string, string])[]) {
  return h(
    'dl',
    { class: 'wb-figures' },
    ...rows.map(([name, value]) =>
      h('div', {}, h('dt', {}, name), h('dd', {}, value))
    )
  );
}
