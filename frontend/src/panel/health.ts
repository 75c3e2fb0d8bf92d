/** "Health": alerts that hold, what slowed the GPUs, and what they told themselves. */

import type { ActiveAlerts } from '../server/alerts';
import { h, setText } from '../core/dom';
import { clip, clock } from '../core/format';
import type { Alert, Event, Severity } from '../shapes/protocol';
import type { Stream } from '../core/page_stream';
import { deviceLabel } from '../core/words';
import type { Row } from './keyed_list';
import { KeyedList } from './keyed_list';
import { mark, trans } from '../core/translation';

const MOST_EVENTS = 10;

/** One thing to know, whoever found it. */
interface Finding {
  readonly id: string;
  readonly severity: Severity;
  readonly title: string;
  readonly text: string;
  /** Where and when. */
  readonly origin: string;
}

export class HealthList {
  readonly node: HTMLElement;

  constructor(
    private readonly stream: Stream,
    private readonly alerts: ActiveAlerts
  ) {
    this.node = h(
      'div',
      {},
      this.summary,
      this.alertRows.node,
      this.conditionRows.node,
      this.eventRows.node
    );
  }

  /** Write what is known now. */
  update(): void {
    const alerts = this.findAlerts();
    const conditions = this.findConditions();
    const events = this.findEvents();
    this.alertRows.show(alerts);
    this.conditionRows.show(conditions);
    this.eventRows.show(events);
    setText(this.summary, this.summaryWords(alerts.length));
  }

  private summaryWords(count: number): string {
    const { phase } = this.stream.connection.status;
    if (phase !== 'open') {
      return trans.__('Not known while there is no connection.');
    }
    if (!this.alerts.known) {
      return trans.__('This server has reported no alert rules.');
    }
    return count === 0
      ? trans.__('No alerts now.')
      : trans._n('%1 alert now.', '%1 alerts now.', count);
  }

  private findAlerts(): Finding[] {
    return this.alerts.list().map(alert => ({
      id: alert.id,
      severity: alert.severity,
      title: clip(alert.title, 120),
      text: clip(alert.text, 400),
      origin:
        this.where(alert.device, alert.title) +
        trans.__('since %1', clock(alert.since_ms))
    }));
  }

  private findConditions(): Finding[] {
    const { store, statements } = this.stream;
    return store.devices.flatMap(device =>
      statements.health(device).map(({ name, severity, sentence }) => ({
        id: `${device.id} ${name}`,
        severity,
        title: deviceLabel(device, store.devices),
        text: clip(sentence, 300),
        origin: ''
      }))
    );
  }

  private findEvents(): Finding[] {
    const alerts = this.alerts.list();
    return this.stream.statements
      .events()
      .filter(event => !alerts.some(alert => tells(alert, event)))
      .slice(0, MOST_EVENTS)
      .map(event => ({
        id: `${event.device} ${event.time_ms} ${event.kind} ${event.code}`,
        severity: event.severity,
        title: clip(
          event.kind === 'xid'
            ? `XID ${event.code ?? 'unknown'}: ${event.title}`
            : event.title,
          120
        ),
        text: clip(`${event.meaning} ${event.remedy}`, 500),
        origin: `${this.where(event.device, '')}${clock(event.time_ms)}`
      }));
  }

  /** Name the device, unless the title does. */
  private where(id: string | null, title: string): string {
    const { devices } = this.stream.store;
    const device = devices.find(candidate => candidate.id === id);
    const label = device === undefined ? '' : deviceLabel(device, devices);
    return label === '' || title.startsWith(label) ? '' : `${label}, `;
  }

  /** Changes only when their number does, so it can be read out. */
  private readonly summary = h('p', { class: 'wb-note', role: 'status' });
  private readonly alertRows = findings(trans.__('Alerts'));
  private readonly conditionRows = findings(
    trans.__('Clocks in the last minute')
  );
  private readonly eventRows = findings(trans.__('Events'));
}

function findings(label: string): KeyedList<Finding> {
  return new KeyedList<Finding>(
    h('ul', { class: 'wb-list wb-health', 'aria-label': label }),
    ({ id }) => id,
    () => new FindingRow()
  );
}

/** Whether an alert says all of an event: then it is told once. */
function tells(alert: Alert, event: Event): boolean {
  return alert.id.startsWith(`${event.kind}/${event.device}/${event.code}/`);
}

/** A severity is told in words too: colour alone tells not everybody. */
const SEVERITIES: Record<Severity, string> = {
  fault: mark('Fault'),
  warning: mark('Warning'),
  normal: ''
};

function severityName(severity: Severity): string {
  const name = SEVERITIES[severity];
  return name ? trans.__(name) : (name ?? clip(severity, 20));
}

class FindingRow implements Row<Finding> {
  update({ severity, title, text, origin }: Finding): void {
    this.node.dataset['severity'] = severity;
    setText(this.severity, severityName(severity));
    setText(this.title, title);
    setText(this.text, text);
    setText(this.origin, origin);
  }

  private readonly severity = h('span', { class: 'wb-severity' });
  private readonly title = h('strong', {});
  private readonly text = h('p', {});
  private readonly origin = h('span', { class: 'wb-note' });
  readonly node = h(
    'li',
    { class: 'wb-finding' },
    h('div', {}, this.severity, ' ', this.title, ' ', this.origin),
    this.text
  );
}
