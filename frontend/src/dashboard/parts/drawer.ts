/** The lower part of the dashboard: one card, with Bokeh figures where it has some. */

import type { BokehLoader } from '../../core/bokeh';
import { h } from '../../core/dom';
import type { Content } from './content';
import { ContentView } from './content';
import { trans } from '../../core/translation';

export class Drawer {
  readonly node = h('aside', {
    class: 'wb-content wb-drawer',
    'aria-label': trans.__('Explore'),
    hidden: ''
  });

  /** @param closed - called when a person has closed it */
  constructor(
    bokeh: BokehLoader,
    private readonly closed: () => void
  ) {
    this.view = new ContentView(this.node, bokeh, ({ openTab }) => [
      openTab
        ? h(
            'button',
            { class: 'wb-button', click: openTab },
            trans.__('Open in a tab')
          )
        : null,
      h(
        'button',
        { class: 'wb-button', click: () => this.leave() },
        trans.__('Close')
      )
    ]);
  }

  get isOpen(): boolean {
    return !this.node.hidden;
  }

  /** Show what has to be asked for first. */
  async showLater(title: string, load: () => Promise<Content>): Promise<void> {
    this.node.hidden = false;
    await this.view.showLater(title, load);
  }

  show(content: Content): void {
    this.node.hidden = false;
    this.view.show(content);
  }

  /** Close it as a person does. */
  leave(): void {
    this.close();
    this.closed();
  }

  close(): void {
    this.view.clear();
    this.node.hidden = true;
  }

  /** Draw the figures again, in the colours of the theme that holds now. */
  restyle(): void {
    this.view.restyle();
  }

  private readonly view: ContentView;
}
