/** The dashboard: all devices over one time axis, with the cells that ran. */

import type { Message } from '@lumino/messaging';
import { Widget } from '@lumino/widgets';
import type { Bands } from '../bands';
import { BokehLoader } from '../bokeh';
import { Details } from '../chart/details';
import { DrawLoop, STORED_MS } from '../chart/loop';
import type { Mark } from '../chart/marks';
import { PastCells } from '../chart/pastcells';
import type { Span } from '../chart/viewport';
import { HOUR_MS, MONTH_MS, Viewport } from '../chart/viewport';
import { h } from '../dom';
import { History } from '../history';
import { instancesOf } from '../instances';
import type { CellReport, Device } from '../protocol';
import type { Stream } from '../shared';
import { Records } from '../records';
import { onThemeChange } from '../theme';
import { Cards } from './cards';
import { CellList } from './cells';
import { Controls } from './controls';
import { Drawer } from './drawer';
import { Find } from './find';
import { Header } from './header';
import { moveByKey } from './keys';
import { MonitorTile } from './monitor';
import { Notices } from './notices';
import { Pressed } from './pressed';
import { ReportList } from './reports';
import type { SectionOptions } from './section';
import { DeviceSection } from './section';

/** With more GPUs than this only the first is unfolded. */
const UNFOLDED_GPUS = 2;

export interface DashboardOptions {
  readonly rateHz: number;
  readonly windowSeconds: number;
}

export class Dashboard extends Widget {
  constructor(
    private readonly stream: Stream,
    private readonly bands: Bands | null,
    options: DashboardOptions,
    openTab: ((report: CellReport) => void) | null = null
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
      () => this.longestMs()
    );
    const records = new Records(connection);
    const history = new History(connection);
    this.details = new Details(
      history,
      () => store.rateHz,
      () => {
        this.header.setProblem(this.details.problem);
        this.loop.drawNow();
      }
    );
    this.loop = new DrawLoop(store, this.viewport, this.details);
    this.controls = new Controls(this.viewport, history);
    this.header = new Header(stream, bands, this.controls);
    this.drawer = new Drawer(new BokehLoader(connection), () =>
      this.select(null)
    );
    this.cards = new Cards(
      stream,
      history,
      this.drawer,
      this.viewport,
      records,
      openTab
    );
    this.find = new Find(records, this.cards);
    this.pastCells = new PastCells(records, () => this.loop.drawNow());
    // both lists: one that grows would push the other from below the pointer
    const pressed = new Pressed(this.body, () => {
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
    this.node.append(this.header.node, this.body, this.drawer.node);
    this.viewport.onChange(() => this.moved());
    this.stops = [
      store.onChange(() => this.refresh()),
      statements.onChange(() => this.told()),
      connection.listen({ status: () => this.header.update() }),
      onThemeChange(() => this.restyle()),
      bands?.onChange(() => this.ran()) ?? (() => undefined)
    ];
    this.rebuild();
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
    this.sections.forEach(section => section.dispose());
    this.loop.dispose();
    this.details.clear();
    this.cells.dispose();
    this.drawer.close();
    super.dispose();
  }

  protected override onActivateRequest(message: Message): void {
    super.onActivateRequest(message);
    this.node.querySelector('select')?.focus();
  }

  private moved(): void {
    this.demand();
    this.controls.update();
    this.node.classList.toggle('wb-held', !this.viewport.following);
    if (this.viewport.following && this.viewport.windowMs <= STORED_MS) {
      this.header.setProblem('');
    }
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
    if (event.ctrlKey || event.metaKey || event.altKey || typing) {
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
    } else if (!moveByKey(key, this.viewport)) {
      return;
    }
    event.preventDefault();
    event.stopPropagation();
  }

  /** Leave what was entered last: selection, card, then the held view. */
  private escape(): void {
    if (this.selection !== null) {
      this.select(null);
    } else if (this.drawer.isOpen) {
      this.drawer.leave();
    } else {
      this.viewport.follow();
    }
  }

  private select(span: Span | null): void {
    this.selection = span;
    this.loop.drawNow();
  }

  private restyle(): void {
    this.sections.forEach(section => section.restyle());
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

  /** The server told something about devices or cells. */
  private told(): void {
    this.controls.setKeeping(this.stream.statements.keeping);
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
    const described = JSON.stringify(this.stream.store.devices);
    if (described !== this.described) {
      this.rebuild();
    }
    this.sections.forEach(section => section.update());
  }

  /** Make the sections of the devices that there are now. */
  private rebuild(): void {
    const { devices } = this.stream.store;
    this.described = JSON.stringify(devices);
    const folded = new Map(
      this.allSections.map(({ device, node }) => [device.id, node.open])
    );
    this.sections.forEach(section => section.dispose());
    this.allSections = [];
    this.loop.clear();
    this.details.clear();
    const of = (kind: Device['kind']) =>
      devices.filter(device => device.kind === kind);
    const gpus = of('gpu');
    const make = (device: Device, index: number): DeviceSection =>
      this.section(
        device,
        folded.get(device.id) ?? (index === 0 || gpus.length <= UNFOLDED_GPUS),
        instancesOf(device, devices).map(make)
      );
    const orphans = of('mig').filter(
      ({ facts }) => !gpus.some(({ id }) => id === facts['parent'])
    );
    const ofGpus = [...gpus, ...orphans].map(make);
    const ofHosts = of('host').map(make);
    const tiles = of('monitor').map(
      device => new MonitorTile(device, this.stream)
    );
    this.sections = [...ofGpus, ...ofHosts];
    this.body.replaceChildren(
      this.notices.node,
      ...ofGpus.map(({ node }) => node),
      this.cells.node,
      this.reports.node,
      this.find.node,
      ...ofHosts.map(({ node }) => node),
      ...tiles.map(({ node }) => node)
    );
    this.sections.forEach(section => section.addTo(this.loop));
    tiles.forEach(tile => tile.addTo(this.loop));
  }

  private section(
    device: Device,
    open: boolean,
    instances: readonly DeviceSection[]
  ): DeviceSection {
    const { viewport } = this;
    const selecting = () => this.controls.selecting;
    const options: SectionOptions = {
      open,
      explore: () => this.cards.explore(device, viewport.span()),
      chart: {
        store: this.stream.store,
        syncKey: this.id || 'warpbook',
        marks: (fromMs, toMs) => this.marks(fromMs, toMs),
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
      }
    };
    const section = new DeviceSection(device, this.stream, options, instances);
    this.allSections.push(section);
    return section;
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
  private readonly pastCells: PastCells;
  private readonly cells: CellList;
  private readonly reports: ReportList;
  private readonly notices: Notices;
  private readonly stops: (() => void)[];
  /** The outermost, and all. */
  private sections: DeviceSection[] = [];
  private allSections: DeviceSection[] = [];
  private selection: Span | null = null;
  private described = '';
  private rateHz: number;
}
