/** The dashboard: all devices over one time axis, with the cells that ran. */

import type { Message } from '@lumino/messaging';
import { Widget } from '@lumino/widgets';
import type { RulesServer } from '../server/alert_rules';
import type { Bands } from '../notebook/bands';
import { BokehLoader } from '../core/bokeh';
import type { ChartOptions } from '../chart/chart';
import { Details } from '../chart/details';
import { DrawLoop, STORED_MS } from '../chart/loop';
import type { Mark } from '../chart/marks';
import { PastCells } from '../chart/pastcells';
import type { Span } from '../core/viewport';
import { HOUR_MS, MONTH_MS, Viewport } from '../core/viewport';
import { h, openerOf } from '../core/dom';
import { History } from '../server/history';
import type { Machines } from '../notebook/machines';
import type { CellReport, Device } from '../shapes/protocol';
import type { Stream } from '../core/page_stream';
import { Records } from '../server/records';
import { onThemeChange } from '../core/theme';
import { Arrangement } from './tiles/arrangement';
import { Cards } from './find/cards';
import { CellList } from './find/cells';
import { Controls } from './controls';
import { Drawer } from './parts/drawer';
import { Elsewhere } from './elsewhere';
import { Find } from './find/find';
import { FullScreen } from './tiles/full_screen';
import { Header } from './header';
import { moveByKey } from './parts/keys';
import { Notices } from './find/notices';
import { PointerPress } from './parts/pointer_press';
import { ReportList } from './reports/reports';
import { RuleList } from './rules/rules';
import { Sections } from './tiles/sections';

export interface DashboardOptions {
  readonly rateHz: number;
  readonly windowSeconds: number;
}

export class Dashboard extends Widget {
  constructor(
    private readonly stream: Stream,
    private readonly bands: Bands | null,
    options: DashboardOptions,
    arrangement = new Arrangement(),
    rules: RulesServer | null = null,
    openTab: ((report: CellReport) => void) | null = null,
    machines: Machines | null = null,
    private readonly doors: HTMLElement = h('div')
  ) {
    super({
      node: h('div', {
        class: 'wb-root wb-dashboard',
        keydown: event => this.key(event as KeyboardEvent)
      })
    });
    const { store, statements, connection } = stream;
    this.rateHz = options.rateHz;
    this.viewport = new Viewport(
      () => store.now(),
      options.windowSeconds * 1000,
      () => this.longestMs(),
      () => this.oldestMs()
    );
    const records = new Records(connection);
    const history = new History(connection);
    this.details = new Details(
      history,
      connection,
      () => store.rateHz,
      () => {
        this.header.setProblem(this.details.problem);
        this.loop.drawNow();
      }
    );
    this.loop = new DrawLoop(store, this.viewport, this.details);
    this.controls = new Controls(this.viewport, history);
    this.header = new Header(stream, bands, this.controls);
    this.drawer = new Drawer(new BokehLoader(connection), opener => {
      this.select(null);
      this.goBack(opener);
    });
    this.cards = new Cards(
      stream,
      history,
      this.drawer,
      this.viewport,
      records,
      openTab
    );
    this.find = new Find(records, this.cards);
    this.rules =
      rules === null ? null : new RuleList(rules, () => store.devices);
    this.pastCells = new PastCells(records, connection, () =>
      this.loop.drawNow()
    );
    // both lists: one that grows would push the other from below the pointer
    const pressed = new PointerPress(this.body, () => {
      this.reports.update();
      this.cells.update();
    });
    this.reports = new ReportList(
      statements,
      () => store.now(),
      pressed,
      report => this.cards.report(report)
    );
    this.cells = new CellList(stream, bands, pressed, this.cards);
    this.notices = new Notices(stream, content => this.drawer.show(content));
    this.elsewhere = machines && new Elsewhere(machines);
    this.sections = new Sections({
      stream,
      loop: this.loop,
      viewport: this.viewport,
      arrangement,
      fullScreen: this.fullScreen,
      chart: device => this.chartOptions(device),
      explore: device => this.cards.explore(device, this.viewport.span()),
      changed: () => this.place()
    });
    this.node.append(
      this.header.node,
      this.body,
      this.drawer.node,
      this.fullScreen.node
    );
    this.viewport.onChange(() => this.moved());
    this.stops = [
      store.onChange(() => this.refresh()),
      statements.onChange(() => this.updateStatements()),
      connection.listen({ status: () => this.header.update() }),
      onThemeChange(() => this.restyle()),
      bands?.onChange(() => this.ran()) ?? (() => undefined)
    ];
    this.doors.hidden = statements.reports.size > 0;
    this.place();
    this.moved();
  }

  /** Watch at another rate. */
  setRate(hz: number): void {
    this.rateHz = hz;
    this.demand();
  }

  /** Show another length of time. */
  setWindow(seconds: number): void {
    this.viewport.setWindow(seconds * 1000);
  }

  override dispose(): void {
    if (this.isDisposed) {
      return;
    }
    this.stops.forEach(stop => stop());
    this.stream.connection.demand(this, null);
    this.sections.dispose();
    this.elsewhere?.dispose();
    this.loop.dispose();
    this.details.dispose();
    this.pastCells.dispose();
    this.cells.dispose();
    this.drawer.close();
    super.dispose();
  }

  protected override onActivateRequest(message: Message): void {
    super.onActivateRequest(message);
    const { activeElement } = document;
    if (activeElement === this.node || !this.node.contains(activeElement)) {
      this.node.querySelector('select')?.focus();
    }
  }

  private moved(): void {
    this.demand();
    this.controls.update();
    this.node.classList.toggle('wb-held', !this.viewport.following);
  }

  private demand(): void {
    if (this.isDisposed) {
      return;
    }
    this.stream.connection.demand(this, {
      rateHz: this.rateHz,
      historySeconds: Math.min(this.viewport.windowMs, STORED_MS) / 1000
    });
  }

  private key(event: KeyboardEvent): void {
    const { key, target } = event;
    const typing =
      target instanceof HTMLSelectElement || target instanceof HTMLInputElement;
    const isDone = event.defaultPrevented || typing;
    if (event.ctrlKey || event.metaKey || event.altKey || isDone) {
      return;
    }
    // a card scrolls by the keys that move the charts
    if (this.drawer.hasFocus && key !== 'Escape') {
      return;
    }
    const onChart =
      target instanceof HTMLElement && target.classList.contains('wb-plot');
    if (key === 'Escape' && this.node.querySelector(':popover-open') !== null) {
      return; // the browser closes it
    }
    if (key === 'Escape') {
      this.escape();
    } else if (key === ' ' && onChart) {
      this.controls.togglePause();
    } else if (key.toLowerCase() === 'r') {
      this.reports.focus();
    } else if (!moveByKey(key, this.viewport)) {
      return;
    }
    event.preventDefault();
    event.stopPropagation();
  }

  /** Leave what was entered last: full screen, selection, card, the held view. */
  private escape(): void {
    if (this.fullScreen.isOpen) {
      this.fullScreen.leave();
    } else if (this.controls.selecting) {
      this.controls.disarm();
    } else if (this.selection !== null) {
      this.select(null);
    } else if (this.drawer.isOpen) {
      this.drawer.leave();
    } else {
      this.viewport.follow();
    }
  }

  /** Give the focus to what opened the card, or to what was written in its place. */
  private goBack(opener: HTMLElement | null): void {
    const { opens } = opener?.dataset ?? {};
    const again = opens === undefined ? null : openerOf(this.node, opens);
    (opener?.isConnected ? opener : again)?.focus();
  }

  private select(span: Span | null): void {
    this.selection = span;
    this.loop.drawNow();
  }

  private restyle(): void {
    this.sections.restyle();
    this.loop.drawNow();
    this.drawer.restyle();
  }

  /** How far back a person can look. */
  private longestMs(): number {
    const { keeping } = this.stream.statements;
    if (keeping === null || keeping.state === 'off') {
      return HOUR_MS;
    }
    const keptMs = this.stream.store.now() - (keeping.from_ms ?? Infinity);
    return Math.max(MONTH_MS, keptMs);
  }

  /** When the oldest reading that is kept was made, as far as a page knows. */
  private oldestMs(): number {
    const { store, statements } = this.stream;
    const keptMs = statements.keeping?.from_ms ?? null;
    if (keptMs !== null) {
      return keptMs;
    }
    const now = store.now();
    // a store that has room left has all there is
    const firstMs = Math.min(now, store.firstMs());
    return now - firstMs < 0.9 * STORED_MS ? firstMs : now - HOUR_MS;
  }

  /** The server told something about devices or cells. */
  private updateStatements(): void {
    const { keeping, reports } = this.stream.statements;
    this.controls.setKeeping(keeping);
    this.doors.hidden = reports.size > 0;
    this.reports.update();
    this.cells.update();
    this.notices.update();
  }

  /** A cell began or ended. */
  private ran(): void {
    this.header.update();
    this.cells.update();
  }

  private refresh(): void {
    this.header.update();
    this.sections.refresh();
  }

  /** Put the sections of the devices that there are now into their places. */
  private place(): void {
    this.details.clear();
    this.body.replaceChildren(
      this.notices.node,
      this.doors,
      ...this.sections.gpuNodes,
      ...(this.elsewhere === null ? [] : [this.elsewhere.node]),
      this.cells.node,
      this.reports.node,
      this.find.node,
      ...(this.rules === null ? [] : [this.rules.node]),
      ...this.sections.otherNodes
    );
    this.loop.drawNow();
  }

  private chartOptions(device: Device): ChartOptions {
    const { viewport } = this;
    const selecting = () => this.controls.selecting;
    return {
      store: this.stream.store,
      syncKey: this.id || 'warpbook',
      marks: (fromMs, toMs) => this.marks(fromMs, toMs),
      forecast: () => this.stream.statements.outlook(device),
      gestures: {
        get selecting() {
          return selecting();
        },
        zoom: (factor, atRatio) => viewport.zoom(factor, atRatio),
        pan: ratio => viewport.pan(ratio),
        show: span => viewport.show(span),
        mark: span => this.select(span),
        finish: () => this.cards.span(this.selection, device)
      }
    };
  }

  private marks(fromMs: number, toMs: number): Mark[] {
    const { store } = this.stream;
    const gaps = store.gaps
      .filter(gap => gap.from_ms <= toMs && gap.to_ms >= fromMs)
      .map(gap => ({
        fromMs: gap.from_ms,
        toMs: gap.to_ms,
        color: null,
        label: gap.message
      }));
    const cells =
      this.bands?.marks(fromMs, toMs, store.offsetMs, band =>
        this.cells.opener(band)?.()
      ) ?? [];
    const { bands } = this;
    // what is older than this page, the server knows
    const past =
      bands === null
        ? []
        : this.pastCells.marks(
            { fromMs, toMs },
            id => bands.has(id),
            notebook => bands.colorOf(notebook),
            record => this.cards.open(record)
          );
    const selection: Mark[] =
      this.selection === null
        ? []
        : [{ ...this.selection, color: 'selection', label: 'selected' }];
    return [...gaps, ...past, ...cells, ...selection];
  }

  private readonly body = h('div', { class: 'wb-body' });
  private readonly viewport: Viewport;
  private readonly details: Details;
  private readonly loop: DrawLoop;
  private readonly controls: Controls;
  private readonly header: Header;
  private readonly drawer: Drawer;
  private readonly cards: Cards;
  private readonly find: Find;
  private readonly rules: RuleList | null;
  private readonly pastCells: PastCells;
  private readonly cells: CellList;
  private readonly reports: ReportList;
  private readonly notices: Notices;
  private readonly stops: (() => void)[];
  private readonly sections: Sections;
  private readonly elsewhere: Elsewhere | null;
  private readonly fullScreen = new FullScreen();
  private selection: Span | null = null;
  private rateHz: number;
}
