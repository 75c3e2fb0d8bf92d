/** A flame graph: which calls the host's, or the GPU's, time belongs to. */

import { h, setText } from '../../core/dom';
import { clip, count, durationNs, share } from '../../core/format';
import type { CallNode } from '../../shapes/protocol';
import type { Drawn } from '../parts/content';
import type { Box, Clock } from './flame_layout';
import { layout, timeNs, wholeNs } from './flame_layout';

const ROW_PX = 18;
const MOST_NAME = 160;
const CLOCKS: readonly [Clock, string][] = [
  ['host', 'Host time'],
  ['gpu', 'GPU time']
];
const HELP =
  'Each box is a call. Its width is the time of the call with all that it calls. ' +
  'Click or Enter zooms in, arrows go to callers, callees and neighbours.';

export class FlameGraph implements Drawn {
  readonly node: HTMLElement;

  /** @param nodes - the tree; a caller comes before what it calls */
  constructor(private readonly nodes: readonly CallNode[]) {
    const clocks = CLOCKS.filter(([clock]) => wholeNs(nodes, clock) > 0);
    this.clock = clocks.at(-1)?.[0] ?? 'host';
    this.buttons = clocks.map(([clock, label]) =>
      h(
        'button',
        { class: 'wb-button', click: () => this.choose(clock) },
        label
      )
    );
    this.node = h(
      'section',
      { class: 'wb-flame', 'aria-label': 'Flame graph' },
      h(
        'div',
        { class: 'wb-controls' },
        h('h4', {}, 'Flame graph'),
        ...(clocks.length > 1 ? this.buttons : []),
        this.all
      ),
      this.boxes,
      this.details
    );
    this.all.addEventListener('click', () => this.zoom(null));
    this.boxes.addEventListener('keydown', event => this.step(event));
    this.write();
  }

  restyle(): void {
    // coloured by the page's own styles
  }

  clear(): void {
    // nothing goes on
  }

  private choose(clock: Clock): void {
    this.clock = clock;
    this.zoom(null);
  }

  private zoom(root: number | null): void {
    this.root = root;
    this.write();
    this.focus(root ?? this.shown[0]?.index ?? -1);
  }

  private write(): void {
    const boxes = layout(this.nodes, this.clock, this.root);
    this.shown = boxes;
    this.buttons.forEach((button, index) => {
      const isChosen = CLOCKS[index]?.[0] === this.clock;
      button.setAttribute('aria-pressed', String(isChosen));
    });
    this.all.hidden = this.root === null;
    const depth = Math.max(0, ...boxes.map(box => box.depth + 1));
    this.boxes.style.setProperty('--wb-flame-height', `${depth * ROW_PX}px`);
    this.area.replaceChildren(
      ...boxes.map((box, at) => this.box(box, at === 0))
    );
    setText(this.details, HELP);
  }

  private box({ index, depth, left, width }: Box, isFirst: boolean): Node {
    const node = this.nodes[index];
    const name = clip(node?.name ?? '', MOST_NAME);
    const words = node === undefined ? name : this.words(node);
    const element = h(
      'button',
      {
        class: 'wb-flame-box',
        'data-call': String(index),
        'data-hue': String(hue(name)),
        tabindex: isFirst ? '0' : '-1',
        'aria-label': words,
        title: words,
        click: () => this.zoom(index),
        focus: () => setText(this.details, words),
        mouseenter: () => setText(this.details, words)
      },
      name
    );
    element.style.left = `${(left * 100).toFixed(3)}%`;
    element.style.width = `${(width * 100).toFixed(3)}%`;
    element.style.top = `${depth * ROW_PX}px`;
    return element;
  }

  private words(node: CallNode): string {
    const time = timeNs(node, this.clock);
    const whole = wholeNs(this.nodes, this.clock);
    const of = this.clock === 'host' ? 'the host’s time' : 'the GPU’s work';
    return (
      `${clip(node.name, MOST_NAME)}: ${durationNs(time)}, ` +
      `${share(whole > 0 ? time / whole : null)} of ${of}, ` +
      `${count(node.calls)} ${node.calls === 1 ? 'call' : 'calls'}`
    );
  }

  /** Go to a caller, a callee or a neighbour. */
  private step(event: KeyboardEvent): void {
    const at = Number((event.target as HTMLElement).dataset['call'] ?? -1);
    const here = this.shown.find(({ index }) => index === at);
    if (here === undefined) {
      return;
    }
    const row = this.shown
      .filter(({ depth }) => depth === here.depth)
      .sort((one, other) => one.left - other.left);
    const place = row.indexOf(here);
    const targets: Record<string, number | undefined> = {
      ArrowUp: this.nodes[at]?.parent,
      ArrowDown: this.shown.find(
        ({ index }) => this.nodes[index]?.parent === at
      )?.index,
      ArrowLeft: row[place - 1]?.index,
      ArrowRight: row[place + 1]?.index
    };
    if (event.key in targets) {
      event.preventDefault();
      this.focus(targets[event.key] ?? at);
    }
  }

  private focus(index: number): void {
    const box = this.area.querySelector<HTMLElement>(`[data-call="${index}"]`);
    if (box === null) {
      return;
    }
    this.area
      .querySelectorAll<HTMLElement>('[tabindex="0"]')
      .forEach(other => (other.tabIndex = -1));
    box.tabIndex = 0;
    box.focus();
  }

  private readonly area = h('div', { class: 'wb-flame-area' });
  private readonly boxes = h('div', { class: 'wb-flame-boxes' }, this.area);
  private readonly details = h('p', { class: 'wb-note', role: 'status' });
  private readonly all = h('button', { class: 'wb-button' }, 'Show all');
  private readonly buttons: readonly HTMLButtonElement[];
  private shown: readonly Box[] = [];
  private clock: Clock;
  private root: number | null = null;
}

/** One of six colours; the same name has the same one. */
function hue(name: string): number {
  let sum = 0;
  for (const letter of name) {
    sum = (sum * 31 + (letter.codePointAt(0) ?? 0)) % 6;
  }
  return sum;
}
