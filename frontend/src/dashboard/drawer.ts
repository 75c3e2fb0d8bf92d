/** The lower part of the dashboard: one thing to explore, with a Bokeh figure. */

import type { BokehLoader, Figure } from '../bokeh';
import { h } from '../dom';
import { isDark } from '../theme';

export interface Content {
  readonly title: string;
  /** What stands above the figure, and below it. */
  readonly above: readonly Node[];
  readonly below: readonly Node[];
  /** Path of the figure below `<base_url>/warpbook/`. */
  readonly figure: string;
}

export class Drawer {
  readonly node = h('aside', {
    class: 'wb-drawer',
    'aria-label': 'Explore',
    hidden: ''
  });

  constructor(private readonly bokeh: BokehLoader) {}

  show(content: Content): void {
    this.content = content;
    const close = h(
      'button',
      { class: 'wb-button', click: () => this.close() },
      'Close'
    );
    const place = h('div', { class: 'wb-figure' });
    this.node.replaceChildren(
      h('header', {}, h('h3', {}, content.title), close),
      ...content.above,
      place,
      ...content.below
    );
    this.node.hidden = false;
    this.node.scrollTop = 0;
    void this.draw(content, place);
  }

  close(): void {
    this.content = null;
    this.figure?.clear();
    this.figure = null;
    this.node.replaceChildren();
    this.node.hidden = true;
  }

  /** Fetch the figure again, in the colours of the theme that holds now. */
  restyle(): void {
    if (this.content !== null) {
      this.show(this.content);
    }
  }

  private async draw(content: Content, place: HTMLElement): Promise<void> {
    this.figure?.clear();
    this.figure = null;
    const words = h('p', { role: 'status' }, 'Drawing…');
    place.append(words);
    const joint = content.figure.includes('?') ? '&' : '?';
    const path = `${content.figure}${joint}theme=${isDark() ? 'dark' : 'light'}`;
    try {
      const figure = await this.bokeh.show(path, place);
      words.remove();
      if (place.isConnected) {
        this.figure = figure;
      } else {
        figure.clear();
      }
    } catch (error) {
      words.textContent = `The figure can't be drawn. ${(error as Error).message}`;
    }
  }

  private content: Content | null = null;
  private figure: Figure | null = null;
}
