/**
 * All events of a profiled run: moved and zoomed by hand or by keys, searched, and
 * added up over a part.
 *
 * The server keeps the events and answers with as many bars as the screen has room
 * for; a screen more on either side is at hand, so that moving draws at once.
 */

import type { BokehLoader } from '../bokeh';
import { Picture } from '../dashboard/picture';
import { h, setText } from '../dom';
import { saveFile } from '../download';
import { count } from '../format';
import type { CellReport, TimelineEvent, TimelineWindow } from '../protocol';
import { isDark } from '../theme';
import { barColumns, foundColumns } from './bars';
import type { Controlled } from './controls';
import { pressed, toolbar } from './controls';
import { Gutter } from './gutter';
import type { Hit } from './hit';
import { hitAt } from './hit';
import type { Layout } from './lanes';
import { layOut, rowAt } from './lanes';
import { Overlay } from './overlay';
import { Pin } from './pin';
import { TimelinePlot } from './plot';
import type { Place } from './pointer';
import { followPointer } from './pointer';
import type { AtHand, Part } from './reach';
import { wanted } from './reach';
import { Search } from './search';
import { partWords, selectionNodes } from './selection';
import { TimelineSource } from './source';
import { Tooltip } from './tooltip';

const NS_PER_MS = 1e6;
/** Between two requests while a person moves. */
const PAUSE_MS = 60;
/** A match takes so much of the screen's width. */
const MATCH_SHARE = 0.2;
const LEAST_NS = 20;
const NONE_COLLAPSED: ReadonlySet<string> = new Set();

export class TimelineView implements Controlled {
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
      changed: () => this.redraw(),
      show: event => this.showEvent(event)
    });
    this.search = new Search(this.source, {
      changed: () => this.refill(),
      show: event => {
        this.showEvent(event);
        void this.pin.set(event);
      },
      beginNs: () => this.plot?.seen.fromNs ?? 0
    });
    this.node = h(
      'section',
      {
        class: 'wb-timeline',
        'aria-label': 'Timeline',
        keydown: event => pressed(event as KeyboardEvent, this)
      },
      this.words
    );
    void this.begin();
  }

  /** Draw it again in the colours of the theme that holds now. */
  restyle(): void {
    const { plot } = this;
    this.fallback?.restyle();
    if (plot !== null) {
      const { seen } = plot;
      plot.clear();
      this.plot = null;
      this.layout = null;
      void this.draw(seen);
    }
  }

  clear(): void {
    this.isCleared = true;
    window.clearTimeout(this.timer);
    window.cancelAnimationFrame(this.frameRequest);
    this.search.dispose();
    this.tooltip.remove();
    this.fallback?.clear();
    this.plot?.clear();
    this.plot = null;
  }

  private async begin(): Promise<void> {
    const { profile, timeline_events: events, live, file } = this.report;
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
    setText(this.words, 'Drawing…');
    const length = Math.max(profile.wall_ms * NS_PER_MS, LEAST_NS);
    try {
      await this.draw({ fromNs: 0, toNs: length });
    } catch (error) {
      if (!this.isCleared) {
        this.fallBack((error as Error).message);
      }
    }
  }

  /** Draw the events that are in the report itself. */
  private fallBack(why: string): void {
    const { id } = this.report;
    this.fallback = new Picture(this.bokeh, {
      path: `api/v1/reports/${encodeURIComponent(id)}/figure`,
      folded: null
    });
    setText(this.words, `Only the longest events are drawn. ${why}`);
    this.node.replaceChildren(this.fallback.node, this.words);
  }

  private async draw(seen: Part): Promise<void> {
    const theme = isDark() ? 'dark' : 'light';
    const asked = wanted(seen, this.node.clientWidth || FIRST_PIXELS, null);
    if (asked === null) {
      return;
    }
    const place = h('div');
    const stage = h('div', { class: 'wb-timeline-stage' }, place);
    const path = `${this.source.path}/figure?theme=${theme}`;
    const [told, json] = await Promise.all([
      this.source.window(asked, this.search.text),
      this.bokeh.item(path),
      this.bokeh.load()
    ]);
    if (this.isCleared) {
      return;
    }
    this.place.replaceChildren(h('div', { class: 'wb-figure' }, stage));
    this.node.replaceChildren(
      toolbar(this, this.search.node),
      this.place,
      this.words,
      this.pin.node,
      this.selected
    );
    const figure = await this.bokeh.draw(json, place);
    if (this.isCleared) {
      figure.clear();
      return;
    }
    this.plot = new TimelinePlot(
      figure,
      () => this.moved(),
      part => this.select(part),
      () => this.laidOut()
    );
    this.overlay = new Overlay(this.plot.palette);
    followPointer(stage, () => this.plot, {
      over: (at, event) => this.tip(at, event),
      clicked: at => this.clicked(at)
    });
    stage.append(this.gutter.node, this.overlay.node);
    this.plot.show(seen);
    this.plot.select(this.selection);
    this.take(told);
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
    const { told, layout } = this;
    const row = layout && rowAt(layout, share * layout.height);
    return told === null || row === null
      ? null
      : hitAt(told, row, atNs, pixelNs);
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
    const { told } = this;
    if (told !== null) {
      this.show({ fromNs: Math.min(told.first_ns, 0), toNs: told.last_ns });
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
    this.tooltip.hide();
    this.tellSeen();
    this.redraw();
    if (this.timer === 0) {
      this.timer = window.setTimeout(() => {
        this.timer = 0;
        void this.fetch();
      }, PAUSE_MS);
    }
  }

  /** Ask for what is seen and not at hand, one request at a time. */
  private async fetch(): Promise<void> {
    const { plot } = this;
    if (plot === null || this.isAsking) {
      return;
    }
    const asked = wanted(plot.seen, plot.pixels, this.atHand);
    if (asked === null) {
      return;
    }
    this.isAsking = true;
    const { text } = this.search;
    try {
      const told = await this.source.window(asked, text);
      if (this.plot === plot && text === this.search.text) {
        this.take(told);
      }
    } catch (error) {
      setText(this.words, (error as Error).message);
      return;
    } finally {
      this.isAsking = false;
    }
    if (this.plot !== null) {
      // a person has moved on, or searched, meanwhile
      this.moved();
    }
  }

  private refill(): void {
    this.atHand = null;
    void this.fetch();
  }

  private take(told: TimelineWindow): void {
    const { plot } = this;
    if (plot === null) {
      return;
    }
    this.told = told;
    const isMerged = told.bars.some(row => row.is_merged);
    this.atHand = {
      fromNs: told.from_ns <= told.first_ns ? -Infinity : told.from_ns,
      toNs: told.to_ns >= told.last_ns ? Infinity : told.to_ns,
      stepNs: isMerged ? told.step_ns : 0
    };
    const { seen } = plot;
    const pixelMs = (seen.toNs - seen.fromNs) / plot.pixels / NS_PER_MS;
    const layout = layOut(told.rows, NONE_COLLAPSED);
    if (layout.height !== this.layout?.height) {
      plot.setHeight(layout.height);
    }
    this.layout = layout;
    plot.fill(
      barColumns(told, layout, pixelMs),
      foundColumns(told, layout, 2 * pixelMs)
    );
    this.laidOut();
    this.tellSeen();
  }

  /** The rows have another place on the screen. */
  private laidOut(): void {
    const { plot, layout } = this;
    if (plot !== null && layout !== null) {
      this.gutter.place(layout, plot.frame);
      this.redraw();
    }
  }

  /** Draw what is over the bars, at most once a frame. */
  private redraw(): void {
    window.cancelAnimationFrame(this.frameRequest);
    this.frameRequest = window.requestAnimationFrame(() => {
      const { plot, told, layout } = this;
      if (plot !== null && told !== null && layout !== null) {
        const { seen, frame } = plot;
        const { pinned, details } = this.pin;
        this.overlay?.draw({ told, layout, seen, frame, pinned, details });
      }
    });
  }

  private tellSeen(): void {
    const { plot, told } = this;
    if (plot === null || told === null) {
      return;
    }
    const all = told.rows.reduce((sum, row) => sum + row.events, 0);
    const omitted =
      told.omitted === 0
        ? ''
        : ` ${count(told.omitted)} more are on rows that are not drawn.`;
    const merged = this.atHand?.stepNs
      ? ' Close events are one bar, as high as it is busy.'
      : '';
    setText(
      this.words,
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
      const told = await this.source.statistics(part);
      nodes = selectionNodes(told, gap => this.show(gap));
    } catch (error) {
      nodes = [h('p', { class: 'wb-warning' }, (error as Error).message)];
    }
    if (this.selection === part) {
      this.selected.replaceChildren(...nodes);
    }
  }

  async save(): Promise<void> {
    setText(this.words, 'Fetching the events…');
    try {
      const file = await this.source.export();
      saveFile(file);
      this.tellSeen();
    } catch (error) {
      setText(this.words, `It could not be saved. ${(error as Error).message}`);
    }
  }

  private readonly source: TimelineSource;
  private readonly pin: Pin;
  private readonly search: Search;
  private readonly place = h('div', {
    tabindex: '0',
    role: 'group',
    'aria-label':
      'Events over time. Arrow keys move, + and - zoom, 0 shows all, ' +
      's adds up what is seen.'
  });
  private readonly words = h('p', { class: 'wb-note', role: 'status' });
  private readonly selected = h('div', {
    class: 'wb-timeline-selection',
    role: 'region',
    'aria-label': 'Selected part'
  });
  private readonly tooltip = new Tooltip();
  private readonly gutter = new Gutter();
  private overlay: Overlay | null = null;
  private layout: Layout | null = null;
  private frameRequest = 0;
  private plot: TimelinePlot | null = null;
  private fallback: Picture | null = null;
  private told: TimelineWindow | null = null;
  private atHand: AtHand | null = null;
  private selection: Part | null = null;
  private isAsking = false;
  private isCleared = false;
  private timer = 0;
}

/** Before the page is laid out. */
const FIRST_PIXELS = 1000;
/** A match is seen, so the screen is at most so many times as long. */
const MOST_AROUND = 200;
