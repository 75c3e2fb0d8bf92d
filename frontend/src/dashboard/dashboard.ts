/** The dashboard: all devices over one time axis, with the cells that ran. */

import type { Message } from '@lumino/messaging';
import { Widget } from '@lumino/widgets';
import type { Bands } from '../bands';
import { BokehLoader } from '../bokeh';
import type { ChartOptions, Line } from '../chart/chart';
import { DrawLoop } from '../chart/loop';
import type { Mark } from '../chart/marks';
import { h } from '../dom';
import { clock } from '../format';
import type { Device } from '../protocol';
import type { Stream } from '../shared';
import { onThemeChange } from '../theme';
import { deviceLabel } from '../words';
import { Drawer } from './drawer';
import { Header } from './header';
import { ReportList } from './reports';
import { DeviceSection, MonitorTile } from './section';

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
    options: DashboardOptions
  ) {
    super({ node: h('div', { class: 'wb-root wb-dashboard' }) });
    const { store, statements, connection } = stream;
    this.windowSeconds = options.windowSeconds;
    this.rateHz = options.rateHz;
    this.loop = new DrawLoop(store, this.windowSeconds * 1000);
    this.drawer = new Drawer(new BokehLoader(connection));
    this.header = new Header(stream, bands, {
      windowSeconds: this.windowSeconds,
      setWindow: seconds => this.setWindow(seconds),
      setPaused: paused => this.loop.setPaused(paused)
    });
    this.reports = new ReportList(statements, content =>
      this.drawer.show(content)
    );
    this.node.append(this.header.node, this.body, this.drawer.node);
    this.stops = [
      store.onChange(() => this.refresh()),
      statements.onChange(() => this.reports.update()),
      connection.listen({ status: () => this.header.update() }),
      onThemeChange(() => this.restyle()),
      bands?.onChange(() => this.header.update()) ?? (() => undefined)
    ];
    this.rebuild();
    this.setWindow(this.windowSeconds);
  }

  /** Watch at another rate. */
  setRate(hz: number): void {
    this.rateHz = hz;
    this.demand();
  }

  override dispose(): void {
    if (this.isDisposed) {
      return;
    }
    this.stops.forEach(stop => stop());
    this.stream.connection.demand(this, null);
    this.sections.forEach(section => section.dispose());
    this.loop.dispose();
    this.drawer.close();
    super.dispose();
  }

  protected override onActivateRequest(message: Message): void {
    super.onActivateRequest(message);
    this.node.querySelector('select')?.focus();
  }

  private setWindow(seconds: number): void {
    this.windowSeconds = seconds;
    this.demand();
    this.loop.setWindow(seconds * 1000);
  }

  private demand(): void {
    if (this.isDisposed) {
      return;
    }
    this.stream.connection.demand(this, {
      rateHz: this.rateHz,
      historySeconds: this.windowSeconds
    });
  }

  private restyle(): void {
    this.sections.forEach(section =>
      section.charts.forEach(chart => chart.restyle())
    );
    this.loop.drawNow();
    this.drawer.restyle();
  }

  private refresh(): void {
    this.header.update();
    this.reports.update();
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
      this.sections.map(({ node }) => [node.dataset['device'], node.open])
    );
    this.sections.forEach(section => section.dispose());
    this.loop.clear();
    const gpus = devices.filter(({ kind }) => kind === 'gpu');
    const hosts = devices.filter(({ kind }) => kind === 'host');
    const monitors = devices.filter(({ kind }) => kind === 'monitor');
    const section = (device: Device, index: number) => {
      const open =
        folded.get(device.id) ?? (index === 0 || gpus.length <= UNFOLDED_GPUS);
      return this.section(device, open);
    };
    const gpuSections = gpus.map(section);
    const hostSections = hosts.map(section);
    const tiles = monitors.map(
      device => new MonitorTile(device, this.stream.store)
    );
    this.sections = [...gpuSections, ...hostSections];
    this.body.replaceChildren(
      ...gpuSections.map(({ node }) => node),
      this.reports.node,
      ...hostSections.map(({ node }) => node),
      ...tiles.map(({ node }) => node)
    );
    this.sections.forEach(each => each.addTo(this.loop));
    tiles.forEach(tile => this.loop.add(tile));
  }

  private section(device: Device, open: boolean): DeviceSection {
    const options: ChartOptions = {
      store: this.stream.store,
      syncKey: this.id || 'warpbook',
      marks: (fromMs, toMs) => this.marks(fromMs, toMs),
      onSelect: (line: Line, fromMs, toMs) =>
        this.explore(line.device, fromMs, toMs)
    };
    const explore = () => {
      const now = this.stream.store.now();
      this.explore(device, now - this.windowSeconds * 1000, now);
    };
    const section = new DeviceSection(
      device,
      this.stream,
      options,
      open,
      explore
    );
    section.node.dataset['device'] = device.id;
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
    return [
      ...gaps,
      ...(this.bands?.marks(fromMs, toMs, store.offsetMs) ?? [])
    ];
  }

  private explore(device: Device, fromMs: number, toMs: number): void {
    const query = new URLSearchParams({
      device: device.id,
      from_ms: fromMs.toFixed(0),
      to_ms: toMs.toFixed(0)
    });
    this.drawer.show({
      title: `${deviceLabel(device)}, ${clock(fromMs)} to ${clock(toMs)}`,
      above: [],
      below: [],
      figure: `api/v1/history/figure?${query.toString()}`
    });
  }

  private readonly body = h('div', { class: 'wb-body' });
  private readonly loop: DrawLoop;
  private readonly header: Header;
  private readonly drawer: Drawer;
  private readonly reports: ReportList;
  private readonly stops: (() => void)[];
  private sections: DeviceSection[] = [];
  private described = '';
  private windowSeconds: number;
  private rateHz: number;
}
