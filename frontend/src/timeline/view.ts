/**
 * All events of a profiled run: moved and zoomed by hand or by keys, searched, and
 * added up over a part.
 *
 * The server keeps the events and answers with as many bars as the screen has room
 * for; a screen more on either side is at hand, so that moving draws at once.
 */

import type { BokehLoader, Figure } from '../core/bokeh';
import { Picture } from '../dashboard/parts/picture';
import { h, saveFile } from '../core/dom';
import { count } from '../core/format';
import type {
  CellReport,
  TimelineEvent,
  TimelineWindow
} from '../shapes/protocol';
import { StatusLine } from '../core/status';
import type { ViewControl } from './controls';
import { KEY_WORDS, pressed, toolbar } from './controls';
import type { Parts } from './opening';
import { Opening } from './opening';
import { Pin } from './pin';
import { TimelinePlot } from './plot';
import type { Part } from './reach';
import { around } from './reach';
import { Search } from './search';
import { partWords, selectionNodes } from './selection';
import { TimelineSource } from './source';
import { Stage, stageElement } from './stage';
import { Whole } from './whole';
import { Windows } from './windows';

/** A match takes so much of the screen's width. */
const MATCH_SHARE = 0.2;
const LEAST_NS = 20;

export class TimelineView implements ViewControl {
  readonly node: HTMLElement;

  /**
   * @param bokeh - draws the figure
   * @param report - whose events they are
   */
  constructor(
    private readonly bokeh: BokehLoader,
    private readonly report: CellReport
  ) {
    this.source = new TimelineSource(bokeh.connection, report.id);
    this.pin = new Pin(this.source, {
      changed: () => this.stage.redraw(),
      show: event => this.showEvent(event)
    });
    this.stage = new Stage(this.pin, part => this.show(part));
    this.search = new Search(this.source, {
      changed: () => this.windows.refill(),
      show: event => {
        this.showEvent(event);
        void this.pin.set(event);
      },
      beginNs: () => this.plot?.seen.fromNs ?? 0
    });
    this.windows = new Windows(this.source, bokeh.connection, {
      screen: () => this.plot,
      text: () => this.search.text,
      fill: drawn => this.fill(drawn),
      tell: problem => this.words.write(problem)
    });
    this.opening = new Opening(bokeh, this.source, {
      reach: () => around(this.seen, this.node.clientWidth || FIRST_PIXELS),
      text: () => this.search.text,
      draw: parts => this.draw(parts),
      lost: why => this.lost(why),
      failed: why => this.fallBack(why)
    });
    this.whole = new Whole(this.source, bokeh.connection, {
      draw: whole => {
        this.stage.minimap.node.hidden = false;
        this.stage.fillMinimap(whole);
      },
      lost: why => this.lostWhole(why)
    });
    this.node = h(
      'section',
      {
        class: 'wb-timeline',
        'aria-label': 'Timeline',
        keydown: event => pressed(event as KeyboardEvent, this)
      },
      this.words.node
    );
    this.begin();
  }

  /** Draw it again in the colours of the theme that holds now. */
  restyle(): void {
    this.fallback?.restyle();
    if (this.plot !== null) {
      void this.opening.open();
    }
  }

  clear(): void {
    this.isCleared = true;
    this.opening.dispose();
    this.whole.dispose();
    this.windows.dispose();
    this.search.dispose();
    this.fallback?.clear();
    this.takeDown();
  }

  /** Take the figure off the page, and what stands around it. */
  private takeDown(): void {
    this.stage.unmount();
    this.figure?.clear();
    this.figure = null;
    this.plot = null;
  }

  private begin(): void {
    const { timeline_events: events, live, file } = this.report;
    if (hasNoEvents(this.report)) {
      this.words.say(NO_EVENTS);
      return;
    }
    if (typeof events !== 'number') {
      this.fallBack(
        typeof file === 'string'
          ? 'The file has more than a timeline keeps: two million.'
          : live
            ? 'Those of a long cell stay in its kernel.'
            : 'The kernel handed over no others: it has an older warpbook, or there ' +
              'are too many.'
      );
      return;
    }
    this.words.say('Drawing…');
    void this.opening.open();
  }

  private lost(why: string): void {
    if (this.plot === null) {
      this.fallBack(why);
    } else {
      this.words.write(`The colours are still those of before. ${why}`);
    }
  }

  private lostWhole(why: string): void {
    this.stage.minimap.node.hidden = true;
    if (this.plot !== null) {
      this.words.write(`The strip of the whole run is missing. ${why}`);
    }
  }

  /** Draw the events that are in the report itself. */
  private fallBack(why: string): void {
    if (this.isCleared) {
      return;
    }
    this.takeDown();
    const { id } = this.report;
    this.fallback ??= new Picture(this.bokeh, {
      path: `api/v1/reports/${encodeURIComponent(id)}/figure`,
      folded: null
    });
    this.words.say(`Only the longest events are drawn. ${why}`);
    this.node.replaceChildren(this.fallback.node, this.words.node);
  }

  private get seen(): Part {
    const length = Math.max(this.report.profile.wall_ns, LEAST_NS);
    return this.plot?.seen ?? { fromNs: 0, toNs: length };
  }

  private async draw({ drawn, json }: Parts): Promise<void> {
    const { seen } = this;
    const place = h('div');
    const element = stageElement(place);
    this.takeDown();
    this.fallback?.clear();
    this.fallback = null;
    this.place.replaceChildren(h('div', { class: 'wb-figure' }, element));
    this.node.replaceChildren(
      toolbar(this, this.search.node),
      this.stage.minimap.node,
      this.place,
      this.words.node,
      this.pin.node,
      this.selected
    );
    const figure = await this.bokeh.draw(json, place);
    if (this.isCleared) {
      figure.clear();
      return;
    }
    this.figure = figure;
    this.plot = new TimelinePlot(
      figure,
      () => this.moved(),
      part => this.select(part),
      () => this.stage.laidOut()
    );
    this.stage.mount(this.plot, element);
    this.plot.show(seen);
    this.plot.select(this.selection);
    this.windows.take(drawn);
    void this.whole.show(drawn);
  }

  zoom(factor: number): void {
    const seen = this.plot?.seen;
    if (seen !== undefined) {
      const middle = (seen.fromNs + seen.toNs) / 2;
      const half = ((seen.toNs - seen.fromNs) / 2) * factor;
      this.show({ fromNs: middle - half, toNs: middle + half });
    }
  }

  pan(share: number): void {
    const seen = this.plot?.seen;
    if (seen !== undefined) {
      const by = (seen.toNs - seen.fromNs) * share;
      this.show({ fromNs: seen.fromNs + by, toNs: seen.toNs + by });
    }
  }

  showAll(): void {
    const { drawn } = this;
    if (drawn !== null) {
      this.show({ fromNs: Math.min(drawn.first_ns, 0), toNs: drawn.last_ns });
    }
  }

  private showEvent({
    start_ns: startNs,
    duration_ns: lengthNs
  }: TimelineEvent) {
    const seen = this.plot?.seen;
    if (seen === undefined) {
      return;
    }
    // as near as the person is, but so that the match is seen
    const least = Math.max(lengthNs, LEAST_NS) / MATCH_SHARE;
    const most = Math.max(lengthNs, 1) * MOST_AROUND;
    const width = Math.min(Math.max(seen.toNs - seen.fromNs, least), most);
    const middle = startNs + lengthNs / 2;
    this.show({ fromNs: middle - width / 2, toNs: middle + width / 2 });
  }

  private show({ fromNs, toNs }: Part): void {
    const missing = Math.max(LEAST_NS - (toNs - fromNs), 0) / 2;
    this.plot?.show({ fromNs: fromNs - missing, toNs: toNs + missing });
  }

  private moved(): void {
    this.stage.moved();
    this.tellSeen();
    this.windows.moved();
  }

  private fill(drawn: TimelineWindow): void {
    this.drawn = drawn;
    this.stage.fill(drawn);
    this.tellSeen();
  }

  private tellSeen(): void {
    const { plot, drawn } = this;
    if (plot === null || drawn === null) {
      return;
    }
    const all = drawn.rows.reduce((sum, row) => sum + row.events, 0);
    const omitted =
      drawn.omitted === 0
        ? ''
        : ` ${count(drawn.omitted)} more are on rows that are not drawn.`;
    const merged = drawn.bars.some(row => row.is_merged)
      ? ' Close events are one bar, as high as it is busy.'
      : '';
    this.words.write(
      `${partWords(plot.seen)} of ${count(all)} events.${merged}${omitted}`
    );
  }

  selectSeen(): void {
    if (this.plot !== null) {
      this.select(this.plot.seen);
    }
  }

  private select(part: Part): void {
    this.selection = part;
    this.plot?.select(part);
    void this.addUp(part);
  }

  deselect(): boolean {
    if (this.pin.unpin()) {
      return true;
    }
    if (this.selection === null) {
      return false;
    }
    this.selection = null;
    this.plot?.select(null);
    this.selected.replaceChildren();
    return true;
  }

  private async addUp(part: Part): Promise<void> {
    let nodes: HTMLElement[];
    try {
      const statistics = await this.source.statistics(part);
      nodes = selectionNodes(statistics, gap => this.show(gap));
    } catch (error) {
      nodes = [h('p', { class: 'wb-warning' }, (error as Error).message)];
    }
    if (this.selection === part) {
      this.selected.replaceChildren(...nodes);
    }
  }

  async save(): Promise<void> {
    this.words.write('Fetching the events…');
    try {
      const file = await this.source.export();
      saveFile(file);
      this.tellSeen();
    } catch (error) {
      this.words.write(`It could not be saved. ${(error as Error).message}`);
    }
  }

  private readonly source: TimelineSource;
  private readonly pin: Pin;
  private readonly stage: Stage;
  private readonly search: Search;
  private readonly windows: Windows;
  private readonly opening: Opening;
  private readonly whole: Whole;
  private readonly place = h('div', {
    tabindex: '0',
    role: 'group',
    'aria-label': `Events over time. ${KEY_WORDS}`
  });
  private readonly words = new StatusLine('', { class: 'wb-note' });
  private readonly selected = h('div', {
    class: 'wb-timeline-selection',
    role: 'region',
    'aria-label': 'Selected part'
  });
  private figure: Figure | null = null;
  private plot: TimelinePlot | null = null;
  private fallback: Picture | null = null;
  private drawn: TimelineWindow | null = null;
  private selection: Part | null = null;
  private isCleared = false;
}

/** What stands instead of an empty chart. */
export const NO_EVENTS =
  'No timeline: nothing ran on a GPU, and no PyTorch operator was called.';

/** Whether a report has nothing to draw over time. */
export function hasNoEvents(report: CellReport): boolean {
  const { profile, timeline_events: events } = report;
  if (report.live) {
    return false;
  }
  return typeof events === 'number'
    ? events === 0
    : profile.lanes.every(({ names }) => names.length === 0);
}

/** Before the page is laid out. */
const FIRST_PIXELS = 1000;
/** A match is seen, so the screen is at most so many times as long. */
const MOST_AROUND = 200;
