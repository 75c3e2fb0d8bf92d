/**
 * The card of a lab's result. What is shown is decided in Python's
 * `warpbook_labs.cards`; here it is only laid out, as text nodes.
 */

import { h, svg } from '../core/dom';
import { clip, durationNs } from '../core/format';
import type {
  Card,
  CardBar,
  CardSection,
  CardTable,
  CardTimeline,
  Cell,
  Part
} from '../shapes/protocol';
import { nameAttributes, nameNodes, scrolled } from '../core/table';
import { cellText, heading, isFigure } from './card_cells';
import { marked, safe } from './words';

const LEFT = 90;
const LANE = 20;
const BAR = 14;
const WIDTH = 640;

/** Draw a card. */
export function labCard(card: Card): HTMLElement {
  return h(
    'section',
    { class: 'wb-lab-card', 'aria-label': `Card of ${clip(card.title, 100)}` },
    h(
      'p',
      { class: 'wb-lab-verdict', 'data-status': card.status },
      ...marked(heading(card))
    ),
    ...card.sections.map(section)
  );
}

function section({ title, parts, fold }: CardSection): HTMLElement {
  const inner = parts.map(part);
  if (fold !== '') {
    const open: Record<string, string> = fold === 'open' ? { open: '' } : {};
    return h('details', open, h('summary', {}, ...marked(title)), ...inner);
  }
  return h(
    'div',
    {},
    title === '' ? null : h('h5', {}, ...marked(title)),
    ...inner
  );
}

function part(from: Part): Node {
  switch (from.type) {
    case 'paragraph':
      return h('p', { 'data-tone': from.tone }, ...marked(from.text));
    case 'location':
      return h('pre', {}, safe(cellText(from)));
    case 'log':
      return h('pre', { tabindex: '0' }, logText(from.lines, from.more));
    case 'facts':
      return h(
        'dl',
        { class: 'wb-lab-facts' },
        ...from.facts.flatMap(({ label, cells }) => [
          h('dt', {}, safe(label)),
          h('dd', {}, ...marked(cells.map(cellText).join(', ')))
        ])
      );
    case 'table':
      return table(from);
    case 'timeline':
      return timeline(from);
  }
}

function logText(lines: readonly string[], more: number): string {
  const end = more > 0 ? [`and ${more} more line${more > 1 ? 's' : ''}`] : [];
  return [...lines.map(line => safe(line)), ...end].join('\n');
}

function table({ heads, rows }: CardTable): HTMLElement {
  const head = heads.map((name, at) =>
    h('th', align(rows[0]?.[at]), safe(name))
  );
  return scrolled(
    h(
      'table',
      { class: 'wb-table' },
      h('thead', {}, h('tr', {}, ...head)),
      h('tbody', {}, ...rows.map(row => h('tr', {}, ...row.map(tableCell))))
    )
  );
}

function tableCell(cell: Cell): HTMLElement {
  const words = safe(cellText(cell));
  if (cell.type === 'location' || cell.type === 'code') {
    return h('td', nameAttributes(words), h('code', {}, ...nameNodes(words)));
  }
  return h('td', align(cell), ...marked(cellText(cell)));
}

/** Figures are set to the right. */
function align(cell: Cell | undefined): Record<string, string> {
  return cell !== undefined && isFigure(cell)
    ? { class: 'wb-figure-cell' }
    : {};
}

function timeline({ end_ns, lanes }: CardTimeline): Node {
  const took = durationNs(end_ns);
  const height = LANE * lanes.length + 16;
  const word = (words: string, x: number, y: number, anchor = 'start') =>
    svg(
      'text',
      { x: `${x}`, y: `${y}`, 'text-anchor': anchor },
      document.createTextNode(safe(words))
    );
  return svg(
    'svg',
    {
      class: 'wb-lab-timeline',
      viewBox: `0 0 ${WIDTH} ${height}`,
      role: 'img',
      'aria-label': `What was done when; the full width is ${took}`
    },
    ...lanes.flatMap(({ engine, name, bars }, at) => [
      word(name, 0, at * LANE + 13),
      ...bars.map(piece => bar(piece, engine, at * LANE + 2, end_ns))
    ]),
    word('0', LEFT, height - 3),
    word(took, WIDTH, height - 3, 'end')
  );
}

function bar(from: CardBar, engine: string, y: number, endNs: number): Node {
  const { begin_ns, end_ns, label, line, is_waiting } = from;
  const scale = (WIDTH - LEFT) / endNs;
  const where = line === null ? '' : `, line ${line}`;
  const words = `${safe(label)}, ${durationNs(end_ns - begin_ns)}${where}`;
  return svg(
    'rect',
    {
      x: (LEFT + begin_ns * scale).toFixed(1),
      y: `${y}`,
      width: Math.max((end_ns - begin_ns) * scale, 0.6).toFixed(1),
      height: `${BAR}`,
      'data-engine': clip(engine, 20),
      ...(is_waiting ? { opacity: '0.35' } : {})
    },
    svg('title', {}, document.createTextNode(words))
  );
}
