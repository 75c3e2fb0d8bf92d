/** A title and its parts, drawn in an element: what the drawer and a tab share. */

import type { BokehLoader } from '../../core/bokeh';
import { h, setText } from '../../core/dom';
import { share as percent } from '../../core/format';
import { StatusLine } from '../../core/status';
import type { Waiting } from '../../server/traces';
import type { TraceProgress } from '../../shapes/protocol';
import type { Drawing } from './picture';
import { Picture } from './picture';
import { trans } from '../../core/translation';

export interface Content {
  readonly title: string;
  readonly parts: readonly Part[];
  /** Opens the same in a tab of the main area; null where there is no such tab. */
  readonly openTab?: (() => void) | null;
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

/** A card without a figure. */
export function card(title: string, ...parts: Node[]): Content {
  return { title, parts };
}

export class ContentView {
  /**
   * @param node - is filled
   * @param bokeh - draws figures
   * @param buttons - stand beside the title
   */
  constructor(
    readonly node: HTMLElement,
    private readonly bokeh: BokehLoader,
    private readonly buttons: (content: Content) => (Node | null)[]
  ) {}

  /**
   * Show what has to be asked for first.
   * @param title - what it is called meanwhile
   * @param load - asks for it, and tells how far it is
   * @param instead - what a person may do where it fails, beside trying again
   */
  async showLater(
    title: string,
    load: (waiting: Waiting) => Promise<Content>,
    instead: () => Node[] = () => []
  ): Promise<void> {
    const status = new StatusLine(trans.__('Asking the server…'));
    const figures = h('span', { class: 'wb-note' });
    const bar = h('progress', { max: '1', 'aria-label': title, hidden: '' });
    const asking = card(title, status.node, h('p', {}, bar, ' ', figures));
    this.show(asking);
    const stop = new AbortController();
    this.stop = () => stop.abort();
    const say = ({ stage, detail, share }: TraceProgress) => {
      status.say(stage);
      bar.hidden = share === null;
      bar.value = share ?? 0;
      setText(figures, share === null ? '' : `${detail}, ${percent(share)}`);
    };
    let content: Content;
    try {
      content = await load({ signal: stop.signal, say });
    } catch (error) {
      const again = () => void this.showLater(title, load, instead);
      content = card(
        title,
        h(
          'p',
          { class: 'wb-warning', role: 'alert' },
          (error as Error).message
        ),
        h(
          'div',
          { class: 'wb-controls' },
          h(
            'button',
            { class: 'wb-button', click: again },
            trans.__('Try again')
          ),
          ...instead()
        )
      );
    }
    if (this.content === asking) {
      this.show(content);
    }
  }

  show(content: Content): void {
    const hadFocus = this.node.contains(document.activeElement);
    this.clear();
    this.content = content;
    this.node.replaceChildren(
      h(
        'header',
        {},
        h('h3', { tabindex: '-1' }, content.title),
        h('div', { class: 'wb-controls' }, ...this.buttons(content))
      ),
      ...content.parts.map(part => this.nodeOf(part))
    );
    this.node.scrollTop = 0;
    if (hadFocus) {
      this.focus();
    }
  }

  /** Begin at its title, which a screen reader reads then. */
  focus(): void {
    this.node.querySelector('h3')?.focus();
  }

  /** Draw the figures again, in the colours of the theme that holds now. */
  restyle(): void {
    this.pictures.forEach(picture => picture.restyle());
  }

  clear(): void {
    this.stop();
    this.stop = () => undefined;
    this.content = null;
    this.pictures.forEach(picture => picture.clear());
    this.pictures = [];
    this.node.replaceChildren();
  }

  private nodeOf(part: Part): Node {
    if (part instanceof Node) {
      return part;
    }
    const picture = drawn(part, this.bokeh);
    this.pictures.push(picture);
    return picture.node;
  }

  private content: Content | null = null;
  /** Ends what the view waits for. */
  private stop: () => void = () => undefined;
  private pictures: Drawn[] = [];
}
