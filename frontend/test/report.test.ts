import assert from 'node:assert/strict';
import { test } from 'node:test';
import { annotations, cpuGroup } from '../src/dashboard/report_cpu';
import {
  advice,
  changeNodes,
  completenessWords,
  trialNodes
} from '../src/dashboard/report_findings';
import { count, duration, share } from '../src/format';
import type { CellProfile } from '../src/protocol';
import type { FakeNode } from './fake_dom';
import { fakeDocument } from './fake_dom';

fakeDocument();

/** No-break spaces as people see them. */
const seen = (value: string) => value.replaceAll('\u00a0', ' ');

test('a little is not nothing', () => {
  const words = [0, 1e-6, 0.003, 0.5, 1.39, null].map(each =>
    seen(share(each))
  );
  assert.deepEqual(words, ['0 %', '< 0.1 %', '0.3 %', '50 %', '139 %', '–']);
  assert.equal(seen(duration(0.00093)), '0.93 µs');
  assert.equal(seen(duration(0)), '0.00 ms');
  assert.equal(count(1234567), '1,234,567');
});

test('a finding says what to try and what it gives', () => {
  const finding = {
    kind: 'launch-bound',
    explains_ns: 1,
    share: 0.9,
    evidence: '',
    change: 'Launch less.',
    bound_ns: 1_500_000,
    lab: 'cuda-graphs'
  } as const;
  assert.equal(
    seen(advice(finding)),
    'Launch less. Without this cause: 1.50 ms at best.'
  );
  const unknown = { ...finding, bound_ns: null };
  assert.equal(advice(unknown), 'Launch less.');
});

test('what is missing from a profile is told in numbers', () => {
  const told = (launches: number, matched: number) =>
    seen(
      completenessWords({
        completeness: { launches, matched, corrupt: 0, profiler_ms: 2 },
        profiler_ms: 30,
        first_start_ms: 20
      } as unknown as CellProfile)
    );
  assert.match(
    told(0, 0),
    /^No launches\. The profiler took 30\.0 ms beside the cell \(20\.0 ms to start .* 2\.00 ms within/
  );
  assert.match(told(1000, 1000), /^All 1,000 launches were seen on the GPU\./);
  assert.match(told(100, 90), /^90 of 100 launches .*; 10 are lost\./);
});

test('a change on copies is told by its name and in words', () => {
  const trial = { name: 'tf32', outcome: 'refused', sentence: 'Not tried.' };
  const told = trialNodes({ trials: [trial] } as unknown as CellProfile);
  const [, rows] = told as unknown as FakeNode[];
  assert.equal(rows?.textContent, 'tf32 Not tried.');
  assert.deepEqual(trialNodes({ trials: [] } as unknown as CellProfile), []);
});

test('what to change is told with its time, its line and a sketch', () => {
  const change = {
    name: 'tf32',
    title: 'Let products use TF32.',
    evidence: 'Products are float32.',
    sentence: 'About 1.76 ms instead of 11.0 ms.',
    line: 3,
    sketch: '<b>code</b>',
    lab: null
  };
  const told = changeNodes({ changes: [change] } as unknown as CellProfile);
  const [, rows] = told as unknown as FakeNode[];
  assert.equal(
    rows?.textContent,
    'Let products use TF32. Line 3. About 1.76 ms instead of 11.0 ms. ' +
      'Products are float32.<b>code</b>'
  );
  assert.deepEqual(changeNodes({ changes: [] } as unknown as CellProfile), []);
});

test('where the time of a run without GPU work went', () => {
  const cpu = {
    window_ns: 10e6,
    loading_ns: 8e6,
    operators_ns: 1e6,
    small_calls_ns: 0,
    python_ns: 1e6,
    waiting_ns: null,
    lost_ns: 0,
    communication_ns: 0,
    calls: 1200,
    small_calls: 1000,
    use: null
  };
  const told = (group: unknown) =>
    seen((group as FakeNode | null)?.textContent ?? '');
  const words = told(cpuGroup({ cpu } as unknown as CellProfile));
  assert.match(words, /In the DataLoader8\.00 ms \(80 %\)/);
  assert.match(words, /Asleepnot known/);
  assert.match(words, /1,200, 1,000 of them small/);
  assert.equal(cpuGroup({ cpu: null } as unknown as CellProfile), null);
  // of a report that an older version kept
  assert.equal(cpuGroup({} as unknown as CellProfile), null);
  assert.deepEqual(annotations({} as unknown as CellProfile).rows, []);
});

test('a part that a program names has times of the host and of the GPU', () => {
  const row = {
    name: 'step',
    times: 3,
    host_ms: 1.5,
    gpu_ms: null,
    work: null
  };
  const { rows } = annotations({
    annotations: [row]
  } as unknown as CellProfile);
  const texts = rows[0]?.map(cell => seen(cell.text));
  assert.deepEqual(texts, ['step', '3', '1.50 ms', '–', '–']);
});
