/** A span of time in figures: what every device did, and what it cost. */

import type { Span } from '../chart/viewport';
import { h } from '../dom';
import { clip, when, duration, NONE, quantity, text } from '../format';
import type { Device, DeviceSpan, SpanStatistics } from '../protocol';
import { deviceHeading } from '../words';
import type { Content } from './content';
import { card } from './content';
import { figures, table } from './table';

/** What is told first, and which of the statistics. */
const KEY_FIGURES: readonly (readonly [string, string, 'mean' | 'most'])[] = [
  ['gpu_utilization_ratio', 'GPU utilization (NVML)', 'mean'],
  ['sm_active_ratio', 'SM active', 'mean'],
  ['tensor_active_ratio', 'Tensor', 'mean'],
  ['dram_active_ratio', 'DRAM', 'mean'],
  ['cpu_ratio', 'CPU', 'mean'],
  ['memory_used_bytes', 'Peak memory', 'most'],
  ['power_watts', 'Mean power', 'mean']
];
/** Below this, readings are missing and not only at the edges. */
const COVERED = 0.95;

/** Name a span as its card is named. */
export function spanTitle({ fromMs, toMs }: Span): string {
  return `${when(fromMs)} to ${when(toMs)} (${duration(toMs - fromMs)})`;
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
    `Statistics of ${spanTitle(span)}`,
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
      ? [h('p', { class: 'wb-missing' }, 'Nothing was read in this span.')]
      : [
          figures(keyFigures(device, span)),
          coverage(span),
          conditionList(span),
          h(
            'details',
            {},
            h('summary', {}, `All ${rows.length} metrics`),
            table(
              '',
              ['Metric', 'Mean', 'Least', 'Peak', 'Covered'],
              rows,
              Infinity
            )
          )
        ];
  return h(
    'section',
    { class: 'wb-card', 'aria-label': `Statistics of ${name}` },
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
    const figure: [string, string] = [label, text(value[which], metric.unit)];
    return [figure];
  });
  return device.kind === 'host' ? known : [...known, ['Energy', energy(span)]];
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
        `Readings cover ${text(least, 'ratio')} of the span.`
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
    ? `${digits}\u00a0${unit}, counted by the GPU`
    : `about ${digits}\u00a0${unit}, estimated from the power`;
}

/** What slowed a device, worst first; nothing where nothing did. */
export function conditionList(span: DeviceSpan): HTMLElement | null {
  return span.conditions.length === 0
    ? null
    : h(
        'ul',
        { class: 'wb-conditions', 'aria-label': 'Health' },
        ...span.conditions.map(({ severity, sentence }) =>
          h('li', { 'data-severity': severity }, clip(sentence, 300))
        )
      );
}
