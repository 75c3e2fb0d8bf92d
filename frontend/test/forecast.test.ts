import assert from 'node:assert/strict';
import { test } from 'node:test';
import type uPlot from 'uplot';
import { Forecast } from '../src/chart/forecast';

const OUTLOOK = {
  used_bytes: 100,
  total_bytes: 200,
  slope_bytes_per_s: 2,
  full_in_s: 50,
  sentence: 'Full in about 50 s at this rate.'
};

/** Where a dashed line would go, in ms and bytes. */
function drawn(forecast: Forecast): number[] {
  const points: number[] = [];
  const point = (x: number, y: number) => points.push(x, y);
  const nothing = () => undefined;
  const ctx = { save: nothing, restore: nothing, setLineDash: nothing };
  const pen = {
    beginPath: nothing,
    stroke: nothing,
    moveTo: point,
    lineTo: point
  };
  const plot = { ctx: { ...ctx, ...pen }, valToPos: (value: number) => value };
  Object.assign(globalThis, { devicePixelRatio: 1 });
  forecast.draw(plot as unknown as uPlot, 'blue');
  return points;
}

test('memory that fills is drawn until it is full, or for half of the span', () => {
  const forecast = new Forecast(() => OUTLOOK);
  forecast.update({ fromMs: 0, toMs: 600_000 }, true);
  assert.deepEqual(drawn(forecast), [600_000, 100, 650_000, 200]);
  forecast.update({ fromMs: 0, toMs: 60_000 }, true);
  assert.deepEqual(drawn(forecast), [60_000, 100, 90_000, 160]);
  assert.match(forecast.words, /Full in about 50 s/);
});

test('the axis ends at the newest reading where nothing is forecast', () => {
  const growing = { ...OUTLOOK, full_in_s: null };
  for (const [outlook, following] of [
    [growing, true],
    [null, true],
    [OUTLOOK, false]
  ] as const) {
    const forecast = new Forecast(() => outlook);
    forecast.update({ fromMs: 0, toMs: 60_000 }, following);
    assert.equal(forecast.endMs, 60_000);
    assert.deepEqual(drawn(forecast), []);
    assert.equal(forecast.words, '');
  }
});
