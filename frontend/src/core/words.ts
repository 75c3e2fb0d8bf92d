/** States in words: what a person reads where there is no number. */

import type { Absence, Device, Replay, State } from '../shapes/protocol';
import { clip, date } from './format';
import type { Latest } from './store';
import { mark, trans } from './translation';

/** Why the two kinds of "utilization" differ; metrics.py says the same. */
export const UTILIZATION_NOTE = mark(
  'NVML’s “GPU utilization” counts any moment in which a kernel or a copy was ' +
    'running, so one tiny kernel or a copy reads 100 %; SM active, tensor and ' +
    'DRAM say how much of the chip was really working.'
);

const STATES: Record<State, string> = {
  ok: '',
  stale: mark('not answering'),
  lost: mark('lost'),
  no_permission: mark('no permission'),
  not_supported: mark('not supported here'),
  unavailable: mark('not available')
};

/** Name a state; a state that this page does not know is shown as it came. */
export function stateName(state: State): string {
  const name = STATES[state];
  return name ? trans.__(name) : (name ?? clip(state, 40));
}

const VERDICTS = new Map<string, string>([
  ['idle', mark('Idle')],
  ['launch-bound', mark('Launch-bound')],
  ['sync-bound', mark('Sync-bound')],
  ['host-bound', mark('Host-bound')],
  ['transfer-bound', mark('Transfer-bound')],
  ['memory-bound', mark('Memory-bound')],
  ['compute-bound', mark('Compute-bound')],
  ['communication-bound', mark('Communication-bound')],
  ['few-multiprocessors', mark('Few multiprocessors')],
  ['mixed', mark('Mixed work')],
  ['unknown', mark('Unknown')]
]);

/**
 * Name what holds a GPU back, and the unit that it computes with, if that is known;
 * a kind that this page does not know, as it came.
 */
export function verdictName(kind: string, unit: string | null = null): string {
  const known = VERDICTS.get(kind);
  const name = known === undefined ? clip(kind, 40) : trans.__(known);
  return unit === null ? name : `${name}: ${clip(unit, 40)}`;
}

/** Say why a device or a metric has no value, as a whole sentence. */
export function because(state: State, why: string): string {
  if (why) {
    return clip(why, 400);
  }
  const name = stateName(state);
  return name ? `${name[0]?.toUpperCase() ?? ''}${name.slice(1)}.` : '';
}

/** What stands where the number of a metric would be. */
export function missingWords(device: Device, name: string): string {
  const metric = device.metrics.find(candidate => candidate.name === name);
  if (metric === undefined) {
    return 'not reported';
  }
  return metric.state === 'ok'
    ? 'no reading'
    : stateName(metric.state) || because(metric.state, metric.why);
}

/** Whether nothing was read yet: then nothing is known, and nothing is wrong. */
export function isUnread({ state, why }: Latest): boolean {
  return state === 'unavailable' && (why === '' || why === 'Not read yet.');
}

/**
 * Name a device as people do: "GPU 0", "Host", and as `%gpu` does "MIG 3:7", the
 * instance 7 of GPU 3, which is looked for among all devices.
 */
export function deviceLabel(
  device: Device,
  devices: readonly Device[]
): string {
  const { kind, index, name, facts } = device;
  const instance = facts['gpu_instance_id'];
  if (kind === 'host') {
    return trans.__('Host');
  }
  if (kind === 'gpu' && index !== null) {
    return `GPU ${index}`;
  }
  if (kind === 'mig' && instance !== undefined) {
    const parent = devices.find(({ id }) => id === facts['parent']);
    const label = `MIG ${parent?.index ?? '?'}:${instance}`;
    // compute instances may share a GPU instance
    const beside = devices.some(
      other =>
        other.id !== device.id &&
        other.facts['parent'] === facts['parent'] &&
        other.facts['gpu_instance_id'] === instance
    );
    return beside ? `${label}/${facts['compute_instance_id'] ?? '?'}` : label;
  }
  return clip(name, 60);
}

/** Name a device with what it is: "GPU 0 · NVIDIA H200", "MIG 3:7 · 1g.18gb". */
export function deviceHeading(
  device: Device,
  devices: readonly Device[]
): string {
  const label = deviceLabel(device, devices);
  const name = clip(
    device.kind === 'mig' ? device.name.replace(/^.* MIG /, '') : device.name,
    60
  );
  return device.kind === 'host' || label === name
    ? label
    : `${label} · ${name}`;
}

/** Say which recording is being played. */
export function replayWords(replay: Replay): string {
  const name = clip(replay.name, 80);
  return trans.__('%1, recorded %2', name, date(replay.recorded_ms));
}

/** Say what is missing, and what to do about it. */
export function absenceWords(absence: Absence): string {
  const message = `${clip(absence.what, 80)}: ${clip(absence.message, 400)}`;
  return absence.remedy ? `${message} ${clip(absence.remedy, 400)}` : message;
}
