import assert from 'node:assert/strict';
import { test } from 'node:test';
import { layout } from '../src/dashboard/tiles/tiles';
import type { Device, Metric } from '../src/shapes/protocol';
import { GPU } from './fixtures';

const NO_GPM = 'GPM needs a Hopper GPU or a newer one.';

function metric(name: string, why = ''): Metric {
  const state = why ? 'not_supported' : 'ok';
  return { name, unit: 'ratio', label: name, state, why };
}

function gpu(...metrics: Metric[]): Device {
  return { ...GPU, metrics };
}

test('a GPU without GPM shows what NVML tells and says the rest once', () => {
  const a100 = gpu(
    metric('gpu_utilization_ratio'),
    metric('memory_used_bytes'),
    metric('sm_active_ratio', NO_GPM),
    metric('sm_occupancy_ratio', NO_GPM),
    metric('tensor_active_ratio', NO_GPM),
    metric('fp32_active_ratio', NO_GPM),
    metric('dram_active_ratio', NO_GPM),
    metric('ecc_corrected_count', 'ECC is off.'),
    metric('performance_state')
  );
  const { activity, main, missing, figures, knowsChip } = layout(a100);
  assert.equal(knowsChip, false);
  assert.deepEqual(activity, []);
  assert.deepEqual(
    main.map(({ title }) => title),
    ['NVML says', 'Memory']
  );
  assert.deepEqual(
    figures.map(({ name }) => name),
    ['performance_state']
  );
  const [, ...rest] = missing.map(({ why }) => why);
  assert.equal(new Set(rest).size, rest.length, 'each reason once');
  const gpm = missing.find(({ why }) => why === NO_GPM);
  assert.ok(gpm?.what.includes('What the chip does'), String(gpm?.what));
});

test('a MIG instance shows its memory and its part of the chip', () => {
  const instance: Device = {
    ...gpu(metric('memory_used_bytes'), metric('sm_active_ratio')),
    kind: 'mig'
  };
  const { activity, main } = layout(instance);
  assert.deepEqual(
    activity.map(({ title }) => title),
    ['Memory', 'What the chip does']
  );
  assert.deepEqual(main, []);
});

test('a recording is not the GPU: what it lacks, the GPU may have', () => {
  const { missing } = layout({ ...gpu(), origin: 'replay' });
  assert.deepEqual(
    missing.map(({ why }) => why),
    ['The recording does not hold it.']
  );
});
