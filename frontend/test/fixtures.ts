/** A server with one GPU that tells power and SM activity. */

import { PROTOCOL_VERSION } from '../src/shapes/protocol';
import type { Device, Frame, Hello } from '../src/shapes/protocol';

export const GPU: Device = {
  id: 'gpu:a',
  kind: 'gpu',
  name: 'GPU A',
  index: 0,
  origin: 'live',
  facts: {},
  metrics: [
    { name: 'power_watts', unit: 'watts', label: 'P', state: 'ok', why: '' },
    {
      name: 'sm_active_ratio',
      unit: 'ratio',
      label: 'SM',
      state: 'ok',
      why: ''
    }
  ]
};
export const HELLO: Hello = {
  type: 'hello',
  protocol: PROTOCOL_VERSION,
  version: '0',
  time_ms: 0,
  rate_hz: 10,
  devices: [GPU],
  absences: [],
  replay: null
};

/** One frame of that GPU. */
export function frame(
  time_ms: number,
  values: (number | null)[],
  state: Frame['readings'][0]['state'] = 'ok'
): Frame {
  return {
    type: 'frame',
    seq: 0,
    time_ms,
    label: null,
    readings: [{ device: 0, state, values, why: '' }]
  };
}
