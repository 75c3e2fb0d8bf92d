/** The side panel: my GPUs now, who holds their memory, and their health. */

import type { Message } from '@lumino/messaging';
import { Widget } from '@lumino/widgets';
import type { ActiveAlerts } from '../server/alerts';
import { h, setText } from '../core/dom';
import { gpusAndInstances } from '../core/instances';
import type { Stream } from '../core/page_stream';
import { absenceWords, replayWords } from '../core/words';
import { Card } from './card';
import { HealthList } from './health';
import { HoldersOfDevice } from './holders';
import type { Kernels } from './kernels';
import { trans } from '../core/translation';

/** Often enough to be live, seldom enough to be read. */
const PERIOD_MS = 500;
const MOST_HZ = 2;
/** With more than this, a card says its verdict without the sentence. */
const FULL_CARDS = 2;

export class Panel extends Widget {
  constructor(
    private readonly stream: Stream,
    private readonly alerts: ActiveAlerts,
    private readonly kernels: Kernels,
    openDashboard: () => void
  ) {
    super({ node: h('div', { class: 'wb-root wb-panel' }) });
    this.health = new HealthList(stream, alerts);
    this.healthSection = section('Health', this.health.node);
    this.retry = h(
      'button',
      { class: 'wb-button', click: () => stream.connection.retry() },
      trans.__('Try now')
    );
    this.node.append(
      h(
        'header',
        { class: 'wb-panel-head' },
        h('h2', {}, trans.__('GPUs')),
        h(
          'button',
          { class: 'wb-button', click: openDashboard },
          trans.__('Open dashboard')
        )
      ),
      h('div', { class: 'wb-connection' }, this.connection, this.retry),
      this.origin,
      this.gpuSection,
      section('Who holds memory', this.holderList),
      this.healthSection
    );
    this.stops = [
      stream.store.onChange(() => this.refresh()),
      stream.statements.onChange(() => this.refresh()),
      stream.connection.listen({ status: () => this.refresh() }),
      alerts.onChange(() => this.refresh())
    ];
  }

  /** Watch at no more than this rate, while the panel is seen. */
  setRate(hz: number): void {
    this.rateHz = Math.min(hz, MOST_HZ);
    this.demand();
  }

  override dispose(): void {
    if (this.isDisposed) {
      return;
    }
    this.stops.forEach(stop => stop());
    this.stop();
    super.dispose();
  }

  protected override onAfterShow(message: Message): void {
    super.onAfterShow(message);
    this.start();
  }

  protected override onAfterAttach(message: Message): void {
    super.onAfterAttach(message);
    if (this.isVisible) {
      this.start();
    }
  }

  protected override onAfterHide(message: Message): void {
    super.onAfterHide(message);
    this.stop();
  }

  protected override onBeforeDetach(message: Message): void {
    this.stop();
    super.onBeforeDetach(message);
  }

  protected override onActivateRequest(message: Message): void {
    super.onActivateRequest(message);
    this.node.querySelector('button')?.focus();
  }

  private start(): void {
    window.clearInterval(this.timer);
    this.timer = window.setInterval(() => this.refresh(), PERIOD_MS);
    this.demand();
    this.refresh();
  }

  private stop(): void {
    window.clearInterval(this.timer);
    this.stream.connection.demand(this, null);
  }

  private demand(): void {
    if (this.isVisible) {
      this.stream.connection.demand(this, {
        rateHz: this.rateHz,
        historySeconds: 0
      });
    }
  }

  /** Write everything that is known now, unless nobody sees it. */
  private refresh(): void {
    if (!this.isVisible || document.hidden) {
      return;
    }
    const { connection, store } = this.stream;
    const { phase, why } = connection.status;
    setText(
      this.connection,
      phase === 'open'
        ? ''
        : why || trans.__('Connecting to the Jupyter server…')
    );
    this.retry.hidden = phase !== 'waiting' && phase !== 'refused';
    const { replay } = store;
    setText(
      this.origin,
      replay === null
        ? ''
        : trans.__('Replay of %1. No live GPU.', replayWords(replay))
    );
    this.origin.hidden = replay === null;
    this.rebuild();
    this.cards.forEach(card => card.update());
    this.holders.forEach(holder => holder.update());
    this.health.update();
    this.placeHealth();
  }

  /** What is wrong comes first; a section that has the focus stays where it is. */
  private placeHealth(): void {
    const next = this.alerts.list().length > 0 ? this.gpuSection : null;
    const { healthSection } = this;
    if (
      healthSection.nextElementSibling !== next &&
      !healthSection.contains(document.activeElement)
    ) {
      this.node.insertBefore(healthSection, next);
    }
  }

  /** Make the cards of the devices that there are now. */
  private rebuild(): void {
    const devices = gpusAndInstances(this.stream.store.devices);
    const described = JSON.stringify(devices);
    if (described === this.described) {
      return;
    }
    this.described = described;
    this.cards = devices.map(device => new Card(device, this.stream));
    this.holders = devices.map(
      device => new HoldersOfDevice(device, this.stream, this.kernels)
    );
    this.cardList.replaceChildren(...this.cards.map(({ node }) => node));
    this.cardList.classList.toggle('wb-compact', devices.length > FULL_CARDS);
    this.holderList.replaceChildren(...this.holders.map(({ node }) => node));
    const [absence] = this.stream.store.absences;
    setText(
      this.empty,
      devices.length > 0
        ? ''
        : absence === undefined
          ? trans.__('This server sees no GPU.')
          : absenceWords(absence)
    );
    this.empty.hidden = devices.length > 0;
  }

  private readonly connection = h('span', { role: 'status' });
  private readonly retry: HTMLButtonElement;
  private readonly origin = h('p', { class: 'wb-note' });
  private readonly empty = h('p', { class: 'wb-note' });
  private readonly cardList = h('ul', { class: 'wb-list wb-gpus' });
  private readonly gpuSection = section(
    'My GPUs now',
    this.empty,
    this.cardList
  );
  private readonly holderList = h('ul', { class: 'wb-list wb-holders' });
  private readonly health: HealthList;
  private readonly healthSection: HTMLElement;
  private readonly stops: (() => void)[];
  private cards: Card[] = [];
  private holders: HoldersOfDevice[] = [];
  private described = '';
  private rateHz = MOST_HZ;
  private timer = 0;
}

/** A part that folds, by keyboard too. */
function section(title: string, ...children: Node[]): HTMLElement {
  return h(
    'details',
    { class: 'wb-panel-section', open: '' },
    h('summary', {}, h('h3', {}, title)),
    ...children
  );
}
