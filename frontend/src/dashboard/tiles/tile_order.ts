/** A grid of charts whose order a person changes, by dragging or by keys. */

import type { Chart } from '../../chart/chart';

/** The type of what is dragged: other views and files are not taken. */
const DRAGGED = 'application/x-warpbook-chart';

export class TileOrder {
  /** @param reordered - called with the titles as they now stand */
  constructor(
    private readonly grid: HTMLElement,
    private readonly charts: readonly Chart[],
    private readonly reordered: (titles: readonly string[]) => void
  ) {
    charts.forEach(chart => this.listen(chart));
  }

  /** Move a chart one place on (1) or back (-1), unless it is at the end. */
  move(chart: Chart, by: -1 | 1): void {
    const { node } = chart;
    const beside =
      by < 0 ? node.previousElementSibling : node.nextElementSibling;
    if (beside === null) {
      return;
    }
    const focused = document.activeElement;
    if (by < 0) {
      beside.before(node);
    } else {
      beside.after(node);
    }
    // an element that is moved loses the focus
    if (focused instanceof HTMLElement && node.contains(focused)) {
      focused.focus();
    }
    this.tell();
  }

  private listen(chart: Chart): void {
    const head = chart.node.querySelector<HTMLElement>('.wb-tile-head');
    if (head === null) {
      return;
    }
    head.draggable = true;
    head.title = 'Drag to another place; Shift and ↑ or ↓ on the chart';
    head.addEventListener('dragstart', event => {
      this.dragged = chart;
      event.dataTransfer?.setData(DRAGGED, chart.spec.title);
      event.dataTransfer?.setDragImage(chart.node, 10, 10);
      chart.node.classList.add('wb-dragged');
    });
    head.addEventListener('dragend', () => {
      chart.node.classList.remove('wb-dragged');
      this.dragged = null;
    });
    chart.node.addEventListener('dragover', event => {
      if (this.dragged !== null && this.dragged !== chart) {
        event.preventDefault();
      }
    });
    chart.node.addEventListener('drop', event => {
      if (this.dragged !== null && this.dragged !== chart) {
        event.preventDefault();
        this.drop(this.dragged, chart);
      }
    });
  }

  /** Take the place of the chart that it was dropped on. */
  private drop(dragged: Chart, target: Chart): void {
    const tiles = [...this.grid.children];
    if (tiles.indexOf(dragged.node) < tiles.indexOf(target.node)) {
      target.node.after(dragged.node);
    } else {
      target.node.before(dragged.node);
    }
    this.tell();
  }

  private tell(): void {
    const titles = [...this.grid.children].flatMap(tile =>
      this.charts
        .filter(({ node }) => node === tile)
        .map(({ spec }) => spec.title)
    );
    this.reordered(titles);
  }

  private dragged: Chart | null = null;
}
