/** A span of time in figures: what every device did, and what it cost. */

import type { Span } from '../../core/viewport';
import { h } from '../../core/dom';
import { clip, when, duration, text } from '../../core/format';
import type {
  Device,
  DeviceSpan,
  SpanStatistics,
  SpanView
} from '../../shapes/protocol';
import { deviceHeading } from '../../core/words';
import type { Content } from '../parts/content';
import { card } from '../parts/content';
import { figures, table } from '../../core/table';
import { trans } from '../../core/translation';
import { labelled, notes } from '../parts/server_words';

/** Name a span as its card is named. */
export function spanTitle({ fromMs, toMs }: Span): string {
  return trans.__(
    '%1 to %2 (%3)',
    when(fromMs),
    when(toMs),
    duration(toMs - fromMs)
  );
}

/** The card of a span; `actions` stand above the figures. */
export function spanContent(
  statistics: SpanStatistics,
  devices: readonly Device[],
  actions: readonly Node[]
): Content {
  const span = { fromMs: statistics.from_ms, toMs: statistics.to_ms };
  const sections = statistics.devices.flatMap(span => {
    const device = devices.find(({ id }) => id === span.device);
    return device === undefined || device.kind === 'monitor'
      ? []
      : [deviceSpan(device, devices, span, statistics.views)];
  });
  return card(
    trans.__('Statistics of %1', spanTitle(span)),
    ...actions,
    ...(statistics.note
      ? [h('p', { class: 'wb-warning' }, clip(statistics.note, 400))]
      : []),
    h('div', { class: 'wb-tables' }, ...sections)
  );
}

function deviceSpan(
  device: Device,
  devices: readonly Device[],
  span: DeviceSpan,
  views: readonly SpanView[]
): HTMLElement {
  const view = views.find(candidate => candidate.device === span.device);
  const name = deviceHeading(device, devices);
  const rows = device.metrics.flatMap(({ name, label, unit }) => {
    const metric = span.metrics[name];
    return metric === undefined || metric.mean === null
      ? []
      : [
          [
            label,
            text(metric.mean, unit),
            text(metric.least, unit),
            text(metric.most, unit),
            text(metric.covered_ratio, 'ratio')
          ]
        ];
  });
  const content =
    rows.length === 0
      ? [
          h(
            'p',
            { class: 'wb-missing' },
            trans.__('Nothing was read in this span.')
          )
        ]
      : [
          figures(labelled(view?.figures ?? [])),
          ...notes(view?.coverage ? [view.coverage] : []),
          conditionList(span),
          h(
            'details',
            {},
            h('summary', {}, trans.__('All %1 metrics', rows.length)),
            table(
              '',
              [
                trans.__('Metric'),
                trans.__('Mean'),
                trans.__('Least'),
                trans.__('Peak'),
                trans.__('Covered')
              ],
              rows,
              Infinity
            )
          )
        ];
  return h(
    'section',
    { class: 'wb-card', 'aria-label': trans.__('Statistics of %1', name) },
    h('h4', {}, name),
    ...content
  );
}

/** What slowed a device, worst first; nothing where nothing did. */
export function conditionList({
  conditions
}: Pick<DeviceSpan, 'conditions'>): HTMLElement | null {
  return conditions.length === 0
    ? null
    : h(
        'ul',
        { class: 'wb-conditions', 'aria-label': trans.__('Health') },
        ...conditions.map(({ severity, sentence }) =>
          h('li', { 'data-severity': severity }, clip(sentence, 300))
        )
      );
}
