/** A chart's legend: which line is which, its value now; a click hides a line. */

import { h, setText } from '../core/dom';
import { text } from '../core/format';
import type { ChartSpec } from './chart';

/** Which lines of a chart are hidden. */
export interface HiddenLines {
  has(metric: string): boolean;
  /** Hide a line or show it again, and draw. */
  toggle(metric: string): void;
}

/** Hidden until the page is left. */
export function hiddenOnPage(): HiddenLines {
  const hidden = new Set<string>();
  return {
    has: metric => hidden.has(metric),
    toggle: metric => {
      if (!hidden.delete(metric)) {
        hidden.add(metric);
      }
    }
  };
}

export class Legend {
  readonly node: HTMLElement;

  constructor(
    private readonly spec: ChartSpec,
    private readonly hidden: HiddenLines
  ) {
    this.values = spec.lines.map(() => h('span', { class: 'wb-value' }));
    const entries = spec.lines.map((line, index) => {
      const words = [
        h('span', { class: `wb-swatch wb-series-${index}` }),
        `${line.label} `,
        this.values[index] ?? ''
      ];
      return h('li', {}, ...this.entry(line.metric, words));
    });
    this.node = h('ul', { class: 'wb-legend' }, ...entries, this.limit());
    this.update();
  }

  isHidden(index: number): boolean {
    // what stands alone can't be hidden
    const { lines } = this.spec;
    return lines.length > 1 && this.hidden.has(lines[index]?.metric ?? '');
  }

  write(index: number, words: string): void {
    const value = this.values[index];
    if (value !== undefined) {
      setText(value, words);
    }
  }

  /** Write which lines are shown; another chart may have hidden one of them. */
  update(): void {
    this.toggles.forEach((toggle, index) => {
      const shown = String(!this.isHidden(index));
      if (toggle.getAttribute('aria-pressed') !== shown) {
        toggle.setAttribute('aria-pressed', shown);
        toggle.title = shown === 'true' ? 'Hide this line' : 'Show this line';
      }
    });
  }

  private entry(metric: string, words: (Node | string)[]): (Node | string)[] {
    if (this.spec.lines.length < 2) {
      return words;
    }
    const click = () => {
      this.hidden.toggle(metric);
      this.update();
    };
    const toggle = h('button', { class: 'wb-legend-toggle', click }, ...words);
    this.toggles.push(toggle);
    return [toggle];
  }

  private limit(): Node | null {
    const { limit, lines } = this.spec;
    return limit === undefined
      ? null
      : h(
          'li',
          {},
          h('span', { class: 'wb-swatch wb-swatch-limit' }),
          `${limit.label} ${text(limit.value, lines[0]?.unit ?? 'count')}`
        );
  }

  private readonly values: HTMLElement[];
  private readonly toggles: HTMLButtonElement[] = [];
}
