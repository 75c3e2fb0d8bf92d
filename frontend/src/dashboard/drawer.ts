/** The lower part of the dashboard: one card, with Bokeh figures where it has some. */

import type { BokehLoader } from '../bokeh';
import { h } from '../dom';
import type { Drawing } from './picture';
import { Picture } from './picture';

export interface Content {
  readonly title: string;
  readonly parts: readonly Part[];
}

/** Something that is drawn, and drawn again in another theme. */
export interface Drawn {
  readonly node: HTMLElement;
  restyle(): void;
  clear(): void;
}

export type Figure = Drawing | ((bokeh: BokehLoader) => Drawn);
export type Part = Node | Figure;

/** Begin to draw a figure. */
export function drawn(figure: Figure, bokeh: BokehLoader): Drawn {
  return typeof figure === 'function'
    ? figure(bokeh)
    : new Picture(bokeh, figure);
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
    this.clear();
    this.node.replaceChildren(
      h('header', {}, h('h3', {}, content.title), close),
      ...content.parts.map(part => this.nodeOf(part))
    );
    this.node.hidden = false;
    this.node.scrollTop = 0;
  }

  /** Close it as a person does. */
  leave(): void {
    this.close();
    this.closed();
  }

  close(): void {
    this.content = null;
    this.clear();
    this.node.replaceChildren();
    this.node.hidden = true;
  }

  /** Draw the figures again, in the colours of the theme that holds now. */
  restyle(): void {
    this.pictures.forEach(picture => picture.restyle());
  }

  private nodeOf(part: Part): Node {
    if (part instanceof Node) {
      return part;
    }
    const picture = drawn(part, this.bokeh);
    this.pictures.push(picture);
    return picture.node;
  }

  private clear(): void {
    this.pictures.forEach(picture => picture.clear());
    this.pictures = [];
  }

  private content: Content | null = null;
  private pictures: Drawn[] = [];
}

/** A card without a figure. */
export function card(title: string, ...parts: Node[]): Content {
  return { title, parts };
}
