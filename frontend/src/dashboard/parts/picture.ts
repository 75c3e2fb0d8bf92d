/** A Bokeh figure in a card: drawn when it is seen, and again in another theme. */

import type { BokehLoader, Figure } from '../../core/bokeh';
import { h } from '../../core/dom';
import { StatusLine } from '../../core/status';
import { isDark } from '../../core/theme';
import { trans } from '../../core/translation';

/** Which figure a card has. */
export interface Drawing {
  /** Path below `<base_url>/warpbook/`. */
  readonly path: string;
  /** It is folded below these words until a person opens it; null is open. */
  readonly folded: string | null;
}

export class Picture {
  readonly node: HTMLElement;

  constructor(
    private readonly bokeh: BokehLoader,
    private readonly drawing: Drawing
  ) {
    const { folded } = drawing;
    if (folded === null) {
      this.node = this.place;
      this.draw();
    } else {
      this.node = h(
        'details',
        { class: 'wb-folded', toggle: () => this.open() },
        h('summary', {}, folded),
        this.place
      );
    }
  }

  /** Fetch it again if it was drawn. */
  restyle(): void {
    if (this.isDrawn) {
      this.clear();
      this.draw();
    }
  }

  clear(): void {
    this.isDrawn = false;
    this.figure?.clear();
    this.figure = null;
    this.place.replaceChildren();
  }

  private open(): void {
    if (!this.isDrawn) {
      this.draw();
    }
  }

  private draw(): void {
    this.isDrawn = true;
    void this.fetch();
  }

  private async fetch(): Promise<void> {
    const words = new StatusLine(trans.__('Drawing…'));
    this.place.replaceChildren(words.node);
    const joint = this.drawing.path.includes('?') ? '&' : '?';
    const theme = isDark() ? 'dark' : 'light';
    const path = `${this.drawing.path}${joint}theme=${theme}`;
    try {
      const figure = await this.bokeh.show(path, this.place);
      if (words.node.isConnected) {
        words.node.remove();
        this.figure = figure;
      } else {
        // closed, or asked for in another theme, meanwhile
        figure.clear();
      }
    } catch (error) {
      words.say(
        trans.__("The figure can't be drawn. %1", (error as Error).message)
      );
    }
  }

  private readonly place = h('div', { class: 'wb-figure' });
  private figure: Figure | null = null;
  private isDrawn = false;
}
