/** A page's timers and stream, both moved on by hand. */

import type { TestContext } from 'node:test';
import type { Listener } from '../src/core/connection';

/** Let the page have such timers; returns how to let milliseconds pass. */
export function fakeTimers(
  context: TestContext
): (ms: number) => Promise<void> {
  context.mock.timers.enable({ apis: ['setTimeout'] });
  Object.assign(globalThis, { window: { setTimeout, clearTimeout } });
  return async ms => {
    for (let left = ms; left > 0; left -= 1_000) {
      context.mock.timers.tick(Math.min(left, 1_000));
      // what was asked is answered before the next second
      await new Promise(resolve => setImmediate(resolve));
    }
  };
}

/** A stream that comes back when the test says so. */
export function fakeConnection() {
  const listeners = new Set<Listener>();
  return {
    listen: (listener: Listener) => {
      listeners.add(listener);
      return () => void listeners.delete(listener);
    },
    isHeard: () => listeners.size > 0,
    comeBack: () => {
      for (const phase of ['waiting', 'connecting', 'open'] as const) {
        listeners.forEach(listener => listener.status?.({ phase, why: '' }));
      }
    }
  };
}
