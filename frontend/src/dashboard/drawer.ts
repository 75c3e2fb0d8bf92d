/** The lower part of the dashboard: one card, with a Bokeh figure where it has one. */

import type { BokehLoader, Figure } from '../bokeh';
import { h } from '../dom';
import { isDark } from '../theme';

export interface Content {
  readonly title: string;
  /** What stands above the figure, and below it. */
  readonly above: readonly Node[];
  readonly below: readonly Node[];
  /** Path of the figure below `<base_url>/warpbook/`; null is none. */
  readonly figure: string | null;
}

export class Drawer {
  readonly node = h('aside', {
    class: 'wb-drawer',
    'aria-label': 'Explore',
    hidden: ''
  });

  /** @param closed - called when a person has closed it */
  constructor(
    private readonly bokeh: BokehLoader,
    private readonly closed: () => void
  ) {}

  get isOpen(): boolean {
    return !this.node.hidden;
  }

  /** Show what has to be asked for first. */
  async showLater(title: string, load: () => Promise<Content>): Promise<void> {
    const asking = card(
      title,
      h('p', { role: 'status' }, 'Asking the server…')
    );
    this.show(asking);
    let content: Content;
    try {
      content = await load();
    } catch (error) {
      const again = () => void this.showLater(title, load);
      content = card(
        title,
        h(
          'p',
          { class: 'wb-warning', role: 'alert' },
          (error as Error).message
        ),
        h('button', { class: 'wb-button', click: again }, 'Try again')
      );
    }
    if (this.content === asking) {
      this.show(content);
    }
  }

  show(content: Content): void {
    this.content = content;
    const close = h(
      'button',
      { class: 'wb-button', click: () => this.leave() },
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
    this.figure?.clear();
    this.figure = null;
    place.hidden = content.figure === null;
    if (content.figure !== null) {
      void this.draw(content.figure, place);
    }
  }

  /** Close it as a person does. */
  leave(): void {
    this.close();
    this.closed();
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
    if (this.content?.figure) {
      this.show(this.content);
    }
  }

  private async draw(asked: string, place: HTMLElement): Promise<void> {
    const words = h('p', { role: 'status' }, 'Drawing…');
    place.append(words);
    const joint = asked.includes('?') ? '&' : '?';
    const path = `${asked}${joint}theme=${isDark() ? 'dark' : 'light'}`;
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

/** A card without a figure. */
export function card(title: string, ...above: Node[]): Content {
  return { title, above, below: [], figure: null };
}
