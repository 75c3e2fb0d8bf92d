/** What stands over and beside the figure: lanes, names, arrows, tooltip, minimap. */

import { h } from '../core/dom';
import type { TimelineWindow } from '../shapes/protocol';
import { barColumns, foundColumns } from './bars';
import type { Hit } from './hit';
import { hitAt } from './hit';
import type { Layout, Lane } from './lanes';
import { layOut, rowAt, laneName } from './lanes';
import { Minimap } from './minimap';
import { Overlay } from './overlay';
import type { Pin } from './pin';
import type { TimelinePlot, Frame } from './plot';
import type { Place } from './pointer';
import { followPointer } from './pointer';
import type { Part } from './reach';
import { Tooltip } from './tooltip';
import { clip } from '../core/format';

const NS_PER_MS = 1e6;
/** Of a pixel's time: less is a part that was moved, and no other zoom. */
const SAME_ZOOM = 0.001;

export class Stage {
  readonly minimap: Minimap;

  /**
   * @param pin - whose event is outlined, and set by a click
   * @param show - a person drags another part into sight
   */
  constructor(
    private readonly pin: Pin,
    show: (part: Part) => void
  ) {
    this.minimap = new Minimap(show);
  }

  /** Stand around another figure, which is in the element. */
  mount(plot: TimelinePlot, element: HTMLElement): void {
    this.plot = plot;
    this.layout = null;
    this.overlay = new Overlay(plot.palette);
    followPointer(element, () => this.plot, {
      over: (at, event) => this.tip(at, event),
      clicked: at => this.clicked(at)
    });
    element.append(this.gutter.node, this.overlay.node);
  }

  unmount(): void {
    window.cancelAnimationFrame(this.request);
    this.tooltip.remove();
    this.plot = null;
  }

  /** Draw a window in its lanes. */
  fill(drawn: TimelineWindow): void {
    const { plot } = this;
    this.drawn = drawn;
    if (plot === null) {
      return;
    }
    const layout = layOut(drawn.rows, this.collapsed);
    if (layout.height !== this.layout?.height) {
      plot.setHeight(layout.height);
    }
    this.layout = layout;
    this.pixelMs = 0;
    this.fitBars(plot, drawn, layout);
    this.laidOut();
  }

  /** Give the bars the widths of the present zoom, where it is another one. */
  private fitBars(
    plot: TimelinePlot,
    drawn: TimelineWindow,
    layout: Layout
  ): void {
    const { seen } = plot;
    const pixelMs = (seen.toNs - seen.fromNs) / plot.pixels / NS_PER_MS;
    if (Math.abs(pixelMs - this.pixelMs) > SAME_ZOOM * pixelMs) {
      this.pixelMs = pixelMs;
      plot.fill(
        barColumns(drawn, layout, pixelMs),
        foundColumns(drawn, layout, 2 * pixelMs)
      );
    }
  }

  /** Draw the whole run in the minimap. */
  fillMinimap(whole: TimelineWindow): void {
    const { plot } = this;
    if (plot !== null) {
      // all rows alike: what is collapsed is still a part of the run
      this.minimap.draw(whole, layOut(whole.rows, new Set()), plot.palette);
      this.minimap.mark(plot.seen);
    }
  }

  /** Another part is seen. */
  moved(): void {
    this.tooltip.hide();
    this.redraw();
  }

  /** The frame has another size. */
  laidOut(): void {
    const { plot, layout } = this;
    if (plot !== null && layout !== null) {
      this.gutter.place(layout, plot.frame);
      this.minimap.measure();
      this.redraw();
    }
  }

  /** Draw what is over the bars, at most once a frame. */
  redraw(): void {
    window.cancelAnimationFrame(this.request);
    this.request = window.requestAnimationFrame(() => {
      const { plot, drawn, layout } = this;
      if (plot !== null && drawn !== null && layout !== null) {
        const { seen, frame } = plot;
        const { pinned, details } = this.pin;
        this.fitBars(plot, drawn, layout);
        this.minimap.mark(seen);
        this.overlay?.draw({ drawn, layout, seen, frame, pinned, details });
      }
    });
  }

  private tip(at: Place | null, event: MouseEvent): void {
    const hit = at && this.hit(at);
    if (hit) {
      this.tooltip.show(hit, event);
    } else {
      this.tooltip.hide();
    }
  }

  private clicked(at: Place): void {
    const hit = this.hit(at);
    // a bar of many events has no details
    if (hit?.merged === null) {
      const { row, startNs, lengthNs } = hit;
      void this.pin.set({ row, start_ns: startNs, duration_ns: lengthNs });
    }
  }

  private hit({ atNs, share, pixelNs }: Place): Hit | null {
    const { drawn, layout } = this;
    const row = layout && rowAt(layout, share * layout.height);
    return drawn === null || row === null
      ? null
      : hitAt(drawn, row, atNs, pixelNs);
  }

  private toggle(lane: string): void {
    if (!this.collapsed.delete(lane)) {
      this.collapsed.add(lane);
    }
    if (this.drawn !== null) {
      this.fill(this.drawn);
    }
  }

  private readonly collapsed = new Set<string>();
  private readonly tooltip = new Tooltip();
  private readonly gutter = new Gutter(lane => this.toggle(lane));
  private plot: TimelinePlot | null = null;
  private overlay: Overlay | null = null;
  private drawn: TimelineWindow | null = null;
  private layout: Layout | null = null;
  /** For which zoom the bars have their widths. */
  private pixelMs = 0;
  private request = 0;
}

/** The element that a figure is drawn into, and that the stage stands in. */
export function stageElement(place: HTMLElement): HTMLElement {
  return h('div', { class: 'wb-timeline-stage' }, place);
}

export class Gutter {
  readonly node = h('div', { class: 'wb-timeline-lanes' });

  /** @param toggle - collapse a lane, or open it again */
  constructor(private readonly toggle: (lane: string) => void) {}

  /** Put each label beside its lane. */
  place({ lanes, height }: Layout, frame: Frame): void {
    const perUnit = frame.height / height;
    this.node.style.width = `${frame.left}px`;
    this.node.style.top = `${frame.top}px`;
    // the same buttons as long as there are the same lanes: one may have the focus
    const names = lanes.map(laneName).join('\n');
    if (names !== this.names) {
      this.names = names;
      this.node.replaceChildren(...lanes.map(lane => this.label(lane)));
    }
    lanes.forEach((lane, at) => {
      const label = this.node.children[at] as HTMLElement;
      label.style.top = `${lane.top * perUnit}px`;
      label.style.height = `${Math.min(lane.height, 1) * perUnit}px`;
      label.setAttribute('aria-expanded', String(!lane.isCollapsed));
    });
  }

  private label(lane: Lane): HTMLElement {
    const words = clip(lane.label, 80);
    return h(
      'button',
      {
        class: 'wb-timeline-lane',
        title: `${words}: collapse or open`,
        click: () => this.toggle(laneName(lane))
      },
      h('span', {}, words)
    );
  }

  private names = '';
}
