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

  /**
   * @param bokeh - draws figures
   * @param closed - called when a person has closed it, with what had opened it
   */
  constructor(
    bokeh: BokehLoader,
    private readonly closed: (opener: HTMLElement | null) => void
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
    this.enter();
    const shown = this.view.showLater(title, load);
    this.view.focus();
    await shown;
  }

  /** @param isAsked - by a person; else the focus stays where it is outside */
  show(content: Content, isAsked = true): void {
    const takesFocus = isAsked || this.hasFocus;
    this.enter();
    this.view.show(content);
    if (takesFocus) {
      this.view.focus();
    }
  }

  /** Close it as a person does. */
  leave(): void {
    const hadFocus = this.hasFocus;
    this.close();
    this.closed(hadFocus ? this.opener : null);
  }

  close(): void {
    this.view.clear();
    this.node.hidden = true;
  }

  /** Draw the figures again, in the colours of the theme that holds now. */
  restyle(): void {
    this.view.restyle();
  }

  get hasFocus(): boolean {
    return this.node.contains(document.activeElement);
  }

  /** Be seen, and remember where the focus was. */
  private enter(): void {
    if (!this.hasFocus) {
      this.opener = document.activeElement as HTMLElement | null;
    }
    this.node.hidden = false;
  }

  private readonly view: ContentView;
  private opener: HTMLElement | null = null;
}
