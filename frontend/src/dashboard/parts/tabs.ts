/** Panels behind tabs: each is drawn when it is first seen. */

import type { BokehLoader } from '../../core/bokeh';
import { h } from '../../core/dom';
import type { Drawn, Part } from './content';
import { drawn } from './content';

export interface Tab {
  readonly name: string;
  readonly parts: readonly Part[];
}

/** Which tab a key goes to, from one of so many. */
const KEYS: Readonly<Record<string, (from: number, count: number) => number>> =
  {
    ArrowLeft: (from, count) => (from + count - 1) % count,
    ArrowRight: (from, count) => (from + 1) % count,
    Home: () => 0,
    End: (_, count) => count - 1
  };

export class Tabs implements Drawn {
  readonly node: HTMLElement;

  /**
   * @param bokeh - draws figures
   * @param label - what the tabs are of
   * @param tabs - at least one
   * @param shown - another tab is shown
   */
  constructor(
    private readonly bokeh: BokehLoader,
    label: string,
    private readonly tabs: readonly Tab[],
    private readonly shown: (name: string) => void = () => undefined
  ) {
    this.buttons = tabs.map(({ name }, index) =>
      h(
        'button',
        {
          class: 'wb-tab',
          role: 'tab',
          click: () => this.select(index),
          keydown: event => this.step(event as KeyboardEvent, index)
        },
        name
      )
    );
    this.panels = tabs.map(({ name }) =>
      h('div', {
        class: 'wb-tab-panel',
        role: 'tabpanel',
        'aria-label': name,
        tabindex: '0'
      })
    );
    this.node = h(
      'div',
      { class: 'wb-tabs' },
      h(
        'div',
        { class: 'wb-tab-list', role: 'tablist', 'aria-label': label },
        ...this.buttons
      ),
      ...this.panels
    );
    this.select(0);
  }

  restyle(): void {
    this.figures.flat().forEach(figure => figure.restyle());
  }

  clear(): void {
    this.figures.flat().forEach(figure => figure.clear());
  }

  /** Open the tab of a name. */
  open(name: string): void {
    this.select(this.tabs.findIndex(tab => tab.name === name));
  }

  private select(chosen: number): void {
    this.buttons.forEach((button, index) => {
      const isChosen = index === chosen;
      button.setAttribute('aria-selected', String(isChosen));
      // one stop for the Tab key; arrows go on from there
      button.tabIndex = isChosen ? 0 : -1;
    });
    this.panels.forEach((panel, index) => {
      panel.hidden = index !== chosen;
    });
    if (this.figures[chosen] === undefined) {
      this.draw(chosen);
    }
    this.shown(this.tabs[chosen]?.name ?? '');
  }

  private draw(index: number): void {
    const figures: Drawn[] = [];
    this.figures[index] = figures;
    for (const part of this.tabs[index]?.parts ?? []) {
      if (part instanceof Node) {
        this.panels[index]?.append(part);
      } else {
        const figure = drawn(part, this.bokeh);
        figures.push(figure);
        this.panels[index]?.append(figure.node);
      }
    }
  }

  private step(event: KeyboardEvent, from: number): void {
    const next = KEYS[event.key]?.(from, this.buttons.length);
    if (next === undefined) {
      return;
    }
    event.preventDefault();
    this.select(next);
    this.buttons[next]?.focus();
  }

  private readonly buttons: readonly HTMLButtonElement[];
  private readonly panels: readonly HTMLElement[];
  private readonly figures: Drawn[][] = [];
}
