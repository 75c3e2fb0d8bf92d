/** A span of time in figures: what every device did, and what it cost. */

import type { Span } from '../chart/viewport';
import { h } from '../dom';
import { clip, when, duration, NONE, quantity, text } from '../format';
import type { Device, DeviceSpan, SpanStatistics } from '../protocol';
import { deviceHeading } from '../words';
import type { Content } from './content';
import { card } from './content';
import { figures, table } from './table';
import { mark, trans } from '../translation';

/** What is told first, and which of the statistics. */
const KEY_FIGURES: readonly (readonly [string, string, 'mean' | 'most'])[] = [
  ['gpu_utilization_ratio', mark('GPU utilization (NVML)'), 'mean'],
  ['sm_active_ratio', mark('SM active'), 'mean'],
  ['tensor_active_ratio', mark('Tensor'), 'mean'],
  ['dram_active_ratio', mark('DRAM'), 'mean'],
  ['cpu_ratio', mark('CPU'), 'mean'],
  ['memory_used_bytes', mark('Peak memory'), 'most'],
  ['power_watts', mark('Mean power'), 'mean']
];
/** Below this, readings are missing and not only at the edges. */
const COVERED = 0.95;

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
  const told = statistics.devices.flatMap(each => {
    const device = devices.find(({ id }) => id === each.device);
    return device === undefined || device.kind === 'monitor'
      ? []
      : [deviceSpan(device, devices, each)];
  });
  return card(
    trans.__('Statistics of %1', spanTitle(span)),
    ...actions,
    ...(statistics.note
      ? [h('p', { class: 'wb-warning' }, clip(statistics.note, 400))]
      : []),
    h('div', { class: 'wb-tables' }, ...told)
  );
}

function deviceSpan(
  device: Device,
  devices: readonly Device[],
  span: DeviceSpan
): HTMLElement {
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
  const told =
    rows.length === 0
      ? [
          h(
            'p',
            { class: 'wb-missing' },
            trans.__('Nothing was read in this span.')
          )
        ]
      : [
          figures(keyFigures(device, span)),
          coverage(span),
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
    ...told
  );
}

/** The figures of a device that matter most. */
export function keyFigures(
  device: Device,
  span: DeviceSpan
): [string, string][] {
  const known = KEY_FIGURES.flatMap(([name, label, which]) => {
    const metric = device.metrics.find(each => each.name === name);
    const value = span.metrics[name];
    if (metric === undefined || value === undefined || value[which] === null) {
      return [];
    }
    const figure: [string, string] = [
      trans.__(label),
      text(value[which], metric.unit)
    ];
    return [figure];
  });
  return device.kind === 'host'
    ? known
    : [...known, [trans.__('Energy'), energy(span)]];
}

/** Say how much of the span readings cover, if not all; null if they do. */
export function coverage(span: DeviceSpan): HTMLElement | null {
  const shares = KEY_FIGURES.flatMap(([name]) => {
    const metric = span.metrics[name];
    return metric === undefined || metric.mean === null
      ? []
      : [metric.covered_ratio];
  });
  const least = Math.min(...shares);
  return least < COVERED
    ? h(
        'p',
        { class: 'wb-note' },
        trans.__('Readings cover %1 of the span.', text(least, 'ratio'))
      )
    : null;
}

/** Energy and what it rests upon: "1.23 kJ, counted". */
export function energy({
  energy_joules: joules,
  energy_basis: basis
}: DeviceSpan): string {
  if (joules === null) {
    return `${NONE} (unknown)`;
  }
  const { digits, unit } = quantity(joules, 'joules');
  return basis === 'counter'
    ? trans.__('%1, counted by the GPU', `${digits}\u00a0${unit}`)
    : trans.__('about %1, estimated from the power', `${digits}\u00a0${unit}`);
}

/** What slowed a device, worst first; nothing where nothing did. */
export function conditionList(span: DeviceSpan): HTMLElement | null {
  return span.conditions.length === 0
    ? null
    : h(
        'ul',
        { class: 'wb-conditions', 'aria-label': trans.__('Health') },
        ...span.conditions.map(({ severity, sentence }) =>
          h('li', { 'data-severity': severity }, clip(sentence, 300))
        )
      );
}
