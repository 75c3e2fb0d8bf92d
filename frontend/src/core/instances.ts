/** MIG instances belong to a GPU: who is whose, and in which order they stand. */

import type { Device } from '../shapes/protocol';

/** The MIG instances of a GPU. */
export function instancesOf(
  gpu: Device,
  devices: readonly Device[]
): readonly Device[] {
  return devices.filter(
    ({ kind, facts }) => kind === 'mig' && facts['parent'] === gpu.id
  );
}

/** All GPUs, each before its instances; last the instances of GPUs not seen. */
export function gpusAndInstances(
  devices: readonly Device[]
): readonly Device[] {
  const gpus = devices.filter(({ kind }) => kind === 'gpu');
  const ordered = gpus.flatMap(gpu => [gpu, ...instancesOf(gpu, devices)]);
  const orphans = devices.filter(
    device => device.kind === 'mig' && !ordered.includes(device)
  );
  return [...ordered, ...orphans];
}
