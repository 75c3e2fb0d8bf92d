/** The devices' sections: of many GPUs the chosen one, below all of them at a glance. */

import type { ChartOptions } from '../../chart/chart';
import type { DrawLoop, Drawable } from '../../chart/loop';
import { STORED_MS } from '../../chart/loop';
import type { Viewport } from '../../core/viewport';
import { instancesOf } from '../../core/instances';
import type { Device } from '../../shapes/protocol';
import type { Stream } from '../../core/page_stream';
import type { Arrangement } from './arrangement';
import type { FullScreen } from './full_screen';
import { Overview } from './overview';
import { DeviceSection } from './section';
import { h, setText } from '../../core/dom';
import { clip } from '../../core/format';
import { FiguresNow } from './now';
import { trans } from '../../core/translation';

export interface SectionsOptions {
  readonly stream: Stream;
  readonly loop: DrawLoop;
  readonly viewport: Viewport;
  readonly arrangement: Arrangement;
  readonly fullScreen: FullScreen;
  /** How a device's charts are drawn and held. */
  chart(device: Device): ChartOptions;
  explore(device: Device): void;
  /** Other nodes are to be placed. */
  changed(): void;
}

export class Sections {
  /** What is shown of GPUs, and below it of everything else. */
  gpuNodes: readonly HTMLElement[] = [];
  otherNodes: readonly HTMLElement[] = [];

  constructor(private readonly options: SectionsOptions) {
    this.rebuild();
  }

  /** Make the sections of the devices that there are now, if they are others. */
  refresh(): void {
    const described = JSON.stringify(this.options.stream.store.devices);
    if (described !== this.described) {
      this.rebuild();
      this.options.changed();
    }
    this.outermost.forEach(section => section.update());
  }

  restyle(): void {
    this.outermost.forEach(section => section.restyle());
  }

  dispose(): void {
    this.outermost.forEach(section => section.dispose());
    this.outermost = [];
    this.all = [];
  }

  private rebuild(): void {
    const { stream, loop, arrangement, fullScreen } = this.options;
    const { devices } = stream.store;
    this.described = JSON.stringify(devices);
    this.all.forEach(({ device, node }) => this.open.set(device.id, node.open));
    if (fullScreen.isOpen) {
      fullScreen.leave();
    }
    this.dispose();
    loop.clear();
    const of = (kind: Device['kind']) =>
      devices.filter(device => device.kind === kind);
    const gpus = of('gpu');
    const orphans = of('mig').filter(
      ({ facts }) => !gpus.some(({ id }) => id === facts['parent'])
    );
    const choices = [...gpus, ...orphans];
    const chosen =
      choices.find(({ id }) => id === arrangement.chosenGpu) ?? choices[0];
    const ofGpus = chosen === undefined ? [] : [this.section(chosen)];
    const ofHosts = of('host').map(host => this.section(host));
    const tiles = of('monitor').map(device => new MonitorTile(device, stream));
    this.outermost = [...ofGpus, ...ofHosts];
    this.overview =
      chosen === undefined || choices.length < 2
        ? null
        : this.overviewOf(choices, chosen);
    this.gpuNodes = [
      ...(this.overview === null ? [] : [this.overview.node]),
      ...ofGpus.map(({ node }) => node)
    ];
    this.otherNodes = [...ofHosts, ...tiles].map(({ node }) => node);
    this.outermost.forEach(section => section.addTo(loop));
    tiles.forEach(tile => tile.addTo(loop));
    if (this.overview !== null) {
      loop.add(this.overview);
    }
  }

  private overviewOf(choices: readonly Device[], chosen: Device): Overview {
    const { stream, viewport } = this.options;
    return new Overview(choices, chosen, {
      stream,
      // the page holds no more readings of all GPUs
      span: () => {
        const { fromMs, toMs } = viewport.recent();
        return { fromMs: Math.max(fromMs, toMs - STORED_MS), toMs };
      },
      choose: device => this.choose(device)
    });
  }

  private choose(device: Device): void {
    const hadFocus = this.overview?.hasFocus ?? false;
    this.options.arrangement.chooseGpu(device.id);
    this.open.set(device.id, true);
    this.rebuild();
    this.options.changed();
    if (hadFocus) {
      this.overview?.focus(device.id);
    }
  }

  private section(device: Device): DeviceSection {
    const { options } = this;
    const { stream, arrangement, fullScreen, loop } = options;
    const instances = instancesOf(device, stream.store.devices).map(instance =>
      this.section(instance)
    );
    const section = new DeviceSection(
      device,
      stream,
      {
        open: this.open.get(device.id) ?? true,
        chart: options.chart(device),
        arrangement,
        fullScreen,
        explore: () => options.explore(device),
        redraw: () => loop.drawNow()
      },
      instances
    );
    this.all.push(section);
    return section;
  }

  /** Whether a section was unfolded, also one that is not shown now. */
  private readonly open = new Map<string, boolean>();
  private outermost: DeviceSection[] = [];
  private all: DeviceSection[] = [];
  private overview: Overview | null = null;
  private described = '';
}

export class MonitorTile implements Drawable {
  readonly node: HTMLElement;
  readonly isOfNow = true;

  constructor(
    private readonly device: Device,
    private readonly stream: Stream
  ) {
    this.figures = new FiguresNow(device, device.metrics, stream.store);
    this.node = h(
      'section',
      { class: 'wb-monitor', 'aria-label': trans.__('What watching costs') },
      h('h3', {}, trans.__('What watching costs')),
      this.figures.node,
      this.note
    );
  }

  addTo(loop: DrawLoop): void {
    loop.add(this.figures);
    loop.add(this);
  }

  write(): void {
    const words = this.stream.statements
      .health(this.device)
      .map(({ sentence }) => sentence);
    setText(this.note, clip(words.join(' '), 400));
  }

  private readonly figures: FiguresNow;
  private readonly note = h('p', { class: 'wb-note', role: 'status' });
}
