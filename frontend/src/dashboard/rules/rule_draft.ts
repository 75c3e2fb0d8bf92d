/** An alert rule as a person types it: what each field means, and what is wrong. */

import type { AlertRule, Device, Unit } from '../../shapes/protocol';

export type Settings = AlertRule['settings'];

/** In what a person writes a threshold, and how much of the metric's unit that is. */
const SCALES: Partial<Record<Unit, readonly [string, number]>> = {
  ratio: ['%', 0.01],
  bytes: ['GiB', 2 ** 30],
  bytes_per_s: ['GB/s', 1e9],
  watts: ['W', 1],
  joules: ['J', 1],
  celsius: ['°C', 1],
  mhz: ['MHz', 1],
  hz: ['Hz', 1],
  ms: ['ms', 1]
};
const NO_SCALE = ['', 1] as const;
/** As long as the server takes. */
const LONGEST_S = 86_400;
const NAME = /^[A-Za-z_][A-Za-z0-9_]{0,63}$/;

/** What a rule can be about. */
export interface MetricChoice {
  readonly name: string;
  readonly label: string;
  readonly unit: Unit;
}

/** All fields as they stand in the form. */
export interface Draft {
  readonly name: string;
  readonly metric: string;
  readonly side: 'above' | 'below';
  readonly threshold: string;
  readonly clear: string;
  readonly device: string;
  readonly severity: string;
  readonly title: string;
  readonly text: string;
  readonly for_s: string;
  readonly clear_s: string;
}

export const NEW: Draft = {
  name: '',
  metric: 'temperature_celsius',
  side: 'above',
  threshold: '',
  clear: '',
  device: 'gpu',
  severity: 'warning',
  title: '',
  text: '',
  for_s: '5',
  clear_s: '15'
};

/** By field, what is wrong and what to write instead. */
export type Problems = Partial<Record<keyof Draft, string>>;

/** The metrics that the devices here have, by name. */
export function metricsOf(devices: readonly Device[]): MetricChoice[] {
  const byName = new Map(
    devices.flatMap(({ metrics }) =>
      metrics.map(({ name, label, unit }) => [name, { name, label, unit }])
    )
  );
  return [...byName.values()].sort((a, b) => a.name.localeCompare(b.name));
}

/** The unit in which a threshold of a metric is written, and its size. */
export function scaleOf(
  metric: string,
  metrics: readonly MetricChoice[]
): readonly [string, number] {
  const unit = metrics.find(({ name }) => name === metric)?.unit;
  return (unit && SCALES[unit]) ?? NO_SCALE;
}

/** Put a rule into the form. */
export function draftOf(
  { name, settings }: AlertRule,
  metrics: readonly MetricChoice[]
): Draft {
  const word = (key: string) => String(settings[key] ?? '');
  const metric = word('metric');
  const [, size] = scaleOf(metric, metrics);
  const scaled = (key: string) => {
    const value = settings[key];
    // 0.07 / 0.01 is not 7 in a computer's numbers
    return typeof value === 'number'
      ? String(Number((value / size).toPrecision(12)))
      : '';
  };
  const side = typeof settings['below'] === 'number' ? 'below' : 'above';
  return {
    name,
    metric,
    side,
    threshold: scaled(side),
    clear: scaled('clear'),
    device: word('device'),
    severity: word('severity'),
    title: word('title'),
    text: word('text'),
    for_s: word('for_s'),
    clear_s: word('clear_s')
  };
}

/** Say what is wrong with a draft; nothing if it can be saved. */
export function problemsOf(draft: Draft, taken: readonly string[]): Problems {
  const problems: Problems = {};
  if (!NAME.test(draft.name)) {
    problems.name =
      'Write a name of letters, digits and underscores, such as warm_room.';
  } else if (taken.includes(draft.name)) {
    problems.name = `There is a rule ${draft.name}; change that one, or choose another name.`;
  }
  const threshold = numberOf(draft.threshold);
  const clear = numberOf(draft.clear);
  if (threshold === null) {
    problems.threshold = 'Write a number.';
  }
  if (draft.clear.trim() !== '' && clear === null) {
    problems.clear =
      'Write a number, or nothing: then it ends at the threshold.';
  } else if (threshold !== null && clear !== null) {
    if (draft.side === 'above' && clear > threshold) {
      problems.clear = 'Write a number that is not above the threshold.';
    } else if (draft.side === 'below' && clear < threshold) {
      problems.clear = 'Write a number that is not below the threshold.';
    }
  }
  if (draft.title.trim() === '') {
    problems.title = 'Write what the alert is called.';
  }
  for (const key of ['for_s', 'clear_s'] as const) {
    const words = secondsProblem(draft[key]);
    if (words !== null) {
      problems[key] = words;
    }
  }
  return problems;
}

/** What is wrong with a number of seconds; null if nothing is. */
export function secondsProblem(text: string): string | null {
  const seconds = numberOf(text);
  return seconds !== null && seconds >= 0 && seconds <= LONGEST_S
    ? null
    : 'Write seconds, from 0 to 86400.';
}

/** A draft without problems as the rules file takes it. */
export function settingsOf(
  draft: Draft,
  enabled: boolean,
  metrics: readonly MetricChoice[]
): Settings {
  const [, size] = scaleOf(draft.metric, metrics);
  const scaled = (text: string) => {
    const value = numberOf(text);
    return value === null ? null : Number((value * size).toPrecision(12));
  };
  return {
    enabled: enabled ? null : false,
    metric: draft.metric,
    above: draft.side === 'above' ? scaled(draft.threshold) : null,
    below: draft.side === 'below' ? scaled(draft.threshold) : null,
    clear: scaled(draft.clear),
    device: draft.device,
    severity: draft.severity,
    title: draft.title.trim(),
    text: draft.text.trim() || null,
    for_s: numberOf(draft.for_s),
    clear_s: numberOf(draft.clear_s)
  };
}

/** The number that a text is; null if it is none. */
export function numberOf(text: string): number | null {
  const value = Number(text.trim().replace(',', '.'));
  return text.trim() !== '' && Number.isFinite(value) ? value : null;
}
