/** One chart over the whole page; Escape puts it back where it was. */

import { h } from '../../core/dom';

export class FullScreen {
  readonly node = h('dialog', {
    class: 'wb-full',
    'aria-label': 'Chart in full screen',
    // the browser's own way to close it, such as a gesture
    cancel: event => {
      event.preventDefault();
      this.leave();
    }
  });

  get isOpen(): boolean {
    return this.place !== null;
  }

  /** Show this tile over the page, or put it back. */
  toggle(tile: HTMLElement): void {
    if (this.isOpen) {
      this.leave();
      return;
    }
    this.place = document.createComment('the chart in full screen');
    tile.replaceWith(this.place);
    this.node.append(tile);
    this.node.showModal();
    focusPlot(tile);
  }

  leave(): void {
    const { place, node } = this;
    this.place = null;
    const tile = node.firstElementChild;
    node.close();
    if (tile !== null) {
      place?.replaceWith(tile);
      focusPlot(tile);
    }
  }

  /** Where the tile stands when it is not over the page. */
  private place: Comment | null = null;
}

function focusPlot(tile: Element): void {
  tile.querySelector<HTMLElement>('.wb-plot')?.focus();
}
