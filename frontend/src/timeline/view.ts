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
import { helpList, pressed, toolbar } from './controls';
import { SeenRange } from './frame';
import type { PinEvents } from './pin';
import { Pin } from './pin';
import type { Part } from './reach';
import { Search } from './search';
import { partWords, selectionNodes } from './selection';
import { onSlices } from './slices';
import { TimelineSource } from './source';
import { Stage } from './stage';
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
   * @param rowOf - goes to a name's row in the tables; null where there is none
   */
  constructor(
    private readonly bokeh: BokehLoader,
    private readonly report: CellReport,
    rowOf: PinEvents['rowOf']
  ) {
    const { id, profile } = report;
    this.source = new TimelineSource(bokeh.connection, id);
    this.range = new SeenRange(`cell ${id}`, {
      fromNs: 0,
      toNs: Math.max(profile.wall_ns, LEAST_NS)
    });
    this.linked = { roots: [{ model: { x_range: this.range } }] };
    this.pin = new Pin(this.source, {
      changed: () => {
        this.chosen = this.pinnedPart ?? this.marked;
        this.stage.redraw();
      },
      show: event => this.showEvent(event),
      rowOf
    });
    this.stage = new Stage(this.range, this.pin, {
      resized: () => this.windows.moved(),
      marked: part => this.mark(part)
    });
    this.find = new Search(this.source, {
      changed: () => this.windows.refill(),
      show: event => this.pinEvent(event),
      beginNs: () => this.range.part.fromNs,
      left: () => this.place.focus()
    });
    this.windows = new Windows(this.source, bokeh.connection, {
      screen: () => (this.isCleared ? null : this.stage),
      text: () => this.find.text,
      fill: drawn => this.fill(drawn),
      tell: problem => this.lost(problem)
    });
    this.whole = new Whole(this.source, bokeh.connection, {
      draw: whole => {
        this.stage.minimap.node.hidden = false;
        this.stage.fillMinimap(whole);
      },
      lost: why => this.lostWhole(why)
    });
    this.place = h(
      'div',
      {
        class: 'wb-timeline-place',
        tabindex: '0',
        role: 'group',
        'aria-label': 'Events over time. The ? key lists the keys.'
      },
      this.stage.node
    );
    this.node = h(
      'section',
      {
        class: 'wb-timeline',
        'aria-label': 'Timeline',
        keydown: event => pressed(event as KeyboardEvent, this)
      },
      this.words.node
    );
    onSlices(this.node, name => this.highlight(name));
    this.range.on_change([], () => this.moved());
    this.begin();
  }

  /** Draw it in the colours of the theme that holds now. */
  restyle(): void {
    this.fallback?.restyle();
    this.stage.restyle();
  }

  clear(): void {
    this.isCleared = true;
    this.bokeh.linked.leave(this.linked);
    this.stage.dispose();
    this.whole.dispose();
    this.windows.dispose();
    this.find.dispose();
    this.fallback?.clear();
  }

  /**
   * Highlight the slices of a name, and pin the first of them.
   * @param name - of events, in full
   */
  highlight(name: string): void {
    this.find.begin(`"${name}"`, 0);
    this.isWanted = true;
    this.takeFocus();
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
    this.bokeh.linked.join(this.linked);
    this.windows.refill();
  }

  private lost(why: string): void {
    if (this.drawn === null) {
      this.fallBack(why);
    } else {
      this.words.write(why);
    }
  }

  private lostWhole(why: string): void {
    this.stage.minimap.node.hidden = true;
    if (this.drawn !== null) {
      this.words.write(`The strip of the whole run is missing. ${why}`);
    }
  }

  /** Draw the events that are in the report itself. */
  private fallBack(why: string): void {
    if (this.isCleared) {
      return;
    }
    const { id } = this.report;
    this.fallback ??= new Picture(this.bokeh, {
      path: `api/v1/reports/${encodeURIComponent(id)}/figure`,
      folded: null
    });
    this.words.say(`Only the longest events are drawn. ${why}`);
    this.node.replaceChildren(this.fallback.node, this.words.node);
  }

  /** Show what has come, instead of what stood there. */
  private open(drawn: TimelineWindow): void {
    this.fallback?.clear();
    this.fallback = null;
    this.node.replaceChildren(
      toolbar(this, this.find.node),
      this.keys,
      this.stage.minimap.node,
      this.place,
      this.words.node,
      this.pin.node,
      this.sums
    );
    this.takeFocus();
    void this.whole.show(drawn);
  }

  /** Who was led here goes on by its keys. */
  private takeFocus(): void {
    if (this.isWanted && this.place.isConnected) {
      this.isWanted = false;
      this.place.focus({ preventScroll: true });
    }
  }

  zoom(factor: number): void {
    this.stage.zoom(factor);
  }

  pan(share: number): void {
    this.range.pan(share);
  }

  showAll(): void {
    const { drawn } = this;
    if (drawn !== null) {
      this.range.show({
        fromNs: Math.min(drawn.first_ns, 0),
        toNs: drawn.last_ns
      });
    }
  }

  showChosen(): void {
    if (this.chosen !== null) {
      this.range.show(withMargin(this.chosen));
    }
  }

  markChosen(): void {
    const part = this.pinnedPart ?? this.range.part;
    this.stage.mark(part);
    this.mark(part);
  }

  step(by: 1 | -1): void {
    const { drawn } = this;
    const { pinned } = this.pin;
    if (
      pinned !== null &&
      drawn !== null &&
      (pinned.start_ns < drawn.from_ns || pinned.start_ns > drawn.to_ns)
    ) {
      // its neighbours are not at hand: back to it first
      this.later = by;
      this.showEvent(pinned);
      return;
    }
    const event = this.stage.neighbour(by);
    if (event !== null) {
      this.pinEvent(event);
    }
  }

  goToRow(): boolean {
    const go = this.pin.goToRow;
    go?.();
    return go !== null;
  }

  search(): void {
    this.find.focus();
  }

  help(): void {
    this.keys.hidden = !this.keys.hidden;
  }

  private get pinnedPart(): Part | null {
    const { pinned } = this.pin;
    return (
      pinned && {
        fromNs: pinned.start_ns,
        toNs: pinned.start_ns + pinned.duration_ns
      }
    );
  }

  private pinEvent(event: Omit<TimelineEvent, 'name'>): void {
    this.showEvent(event);
    void this.pin.set(event);
  }

  private showEvent({
    start_ns: startNs,
    duration_ns: lengthNs
  }: Omit<TimelineEvent, 'name'>) {
    const { fromNs, toNs } = this.range.part;
    // as near as the person is, but so that the match is seen
    const least = Math.max(lengthNs, LEAST_NS) / MATCH_SHARE;
    const most = Math.max(lengthNs, 1) * MOST_AROUND;
    const width = Math.min(Math.max(toNs - fromNs, least), most);
    const middle = startNs + lengthNs / 2;
    this.range.show({ fromNs: middle - width / 2, toNs: middle + width / 2 });
  }

  private moved(): void {
    this.tellSeen();
    this.windows.moved();
  }

  private fill(drawn: TimelineWindow): void {
    const isFirst = this.drawn === null;
    this.drawn = drawn;
    if (isFirst) {
      this.open(drawn);
    }
    this.stage.fill(drawn);
    this.tellSeen();
    const { later } = this;
    this.later = null;
    if (later !== null) {
      this.step(later);
    }
  }

  private tellSeen(): void {
    const { drawn } = this;
    if (drawn === null) {
      return;
    }
    const all = drawn.rows.reduce((sum, row) => sum + row.events, 0);
    const omitted =
      drawn.omitted === 0
        ? ''
        : ` ${count(drawn.omitted)} more are on rows that are not drawn.`;
    const merged = drawn.bars.some(row => row.is_merged)
      ? ' Events that lie close together are one bar; its height is their share of the time.'
      : '';
    this.words.write(
      `${partWords(this.range.part)} of ${count(all)} events.${merged}${omitted}`
    );
  }

  private mark(part: Part): void {
    this.marked = this.chosen = part;
    void this.addUp(part);
  }

  deselect(): boolean {
    if (this.pin.unpin()) {
      return true;
    }
    if (this.marked === null) {
      return false;
    }
    this.marked = this.chosen = null;
    this.stage.mark(null);
    this.sums.replaceChildren();
    return true;
  }

  private async addUp(part: Part): Promise<void> {
    let nodes: HTMLElement[];
    try {
      const statistics = await this.source.statistics(part);
      nodes = selectionNodes(statistics, gap => this.range.show(gap));
    } catch (error) {
      nodes = [h('p', { class: 'wb-warning' }, (error as Error).message)];
    }
    if (this.marked === part) {
      this.sums.replaceChildren(...nodes);
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
  private readonly range: SeenRange;
  private readonly pin: Pin;
  private readonly stage: Stage;
  private readonly find: Search;
  private readonly windows: Windows;
  private readonly whole: Whole;
  private readonly place: HTMLElement;
  private readonly keys = helpList();
  private readonly words = new StatusLine('', { class: 'wb-note' });
  private readonly sums = h('div', {
    class: 'wb-timeline-selection',
    role: 'region',
    'aria-label': 'Marked span'
  });
  /** Figures over the same time move along. */
  private readonly linked: Pick<Figure, 'roots'>;
  private fallback: Picture | null = null;
  /** A step to make once its events are at hand. */
  private later: 1 | -1 | null = null;
  /** Somebody was led here before it was drawn. */
  private isWanted = false;
  private drawn: TimelineWindow | null = null;
  private marked: Part | null = null;
  /** What was pinned or marked last. */
  private chosen: Part | null = null;
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

/** A match is seen, so the screen is at most so many times as long. */
const MOST_AROUND = 200;
/** Of what was chosen, on either side. */
const MARGIN = 0.1;

function withMargin({ fromNs, toNs }: Part): Part {
  const margin = MARGIN * (toNs - fromNs);
  return { fromNs: fromNs - margin, toNs: toNs + margin };
}
