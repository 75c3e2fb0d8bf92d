/** Tables and rows of figures, the same in every card. */

import { h } from '../../core/dom';

/** Rows of a table; more is told in its caption. */
const MOST_ROWS = 20;

export type Row = readonly (string | Node)[];

/** A table whose first column is words and whose others are figures. */
export function table(
  caption: string,
  heads: readonly string[],
  rows: readonly Row[],
  mostRows = MOST_ROWS
): HTMLTableElement {
  const cell = (tag: 'td' | 'th', value: string | Node, column: number) =>
    h(tag, column > 0 ? { class: 'wb-figure-cell' } : {}, value);
  const more = rows.length - mostRows;
  return h(
    'table',
    { class: 'wb-table' },
    h('caption', {}, more > 0 ? `${caption} (${more} more)` : caption),
    h(
      'thead',
      {},
      h('tr', {}, ...heads.map((head, column) => cell('th', head, column)))
    ),
    h(
      'tbody',
      {},
      ...rows
        .slice(0, mostRows)
        .map(row =>
          h('tr', {}, ...row.map((value, column) => cell('td', value, column)))
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
