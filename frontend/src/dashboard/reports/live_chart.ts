/** Windows of a long cell over its time: how long a step took, and how busy the GPU. */

import { h, svg } from '../../core/dom';
import { durationNs } from '../../core/format';
import type { Live, LiveWindow } from '../../shapes/protocol';

/** In units of the drawing; it stretches to the width that there is. */
const WIDTH = 600;
const STEP_HEIGHT = 64;
const GAP = 8;
const BUSY_HEIGHT = 32;
const LEAST_WIDTH = 2;

/** Draw the windows; a table beside it has the values. */
export function liveChart({ windows, elapsed_ns: elapsedNs }: Live): Node[] {
  const most = Math.max(
    ...windows.flatMap(part => [stepNs(part), part.bare_step_ns ?? 0]),
    1
  );
  const x = (ns: number) => (WIDTH * ns) / Math.max(elapsedNs, 1);
  const y = (ns: number) => STEP_HEIGHT * (1 - ns / most);
  const bare = windows.filter(part => part.bare_step_ns !== null);
  const points = bare.map(
    part =>
      `${x(part.start_ns).toFixed(1)},${y(part.bare_step_ns ?? 0).toFixed(1)}`
  );
  const bottom = STEP_HEIGHT + GAP + BUSY_HEIGHT;
  const chart = svg(
    'svg',
    {
      class: 'wb-live-chart',
      viewBox: `0 0 ${WIDTH} ${bottom}`,
      preserveAspectRatio: 'none',
      role: 'img',
      'aria-label':
        `Step time and GPU busy share in ${windows.length} windows over ` +
        `${durationNs(elapsedNs)}; the table of windows has the values`
    },
    ...windows.flatMap(part => {
      const busy = busyRatio(part);
      const place = {
        x: x(part.start_ns).toFixed(1),
        width: Math.max(x(part.end_ns - part.start_ns), LEAST_WIDTH).toFixed(1)
      };
      const step = svg('rect', {
        ...place,
        class: 'wb-live-profiled',
        y: y(stepNs(part)).toFixed(1),
        height: (STEP_HEIGHT - y(stepNs(part))).toFixed(1)
      });
      return busy === null
        ? [step]
        : [
            step,
            svg('rect', {
              ...place,
              class: 'wb-live-busy',
              y: (bottom - BUSY_HEIGHT * busy).toFixed(1),
              height: (BUSY_HEIGHT * busy).toFixed(1)
            })
          ];
    }),
    svg('polyline', { class: 'wb-live-bare', points: points.join(' ') })
  );
  return [
    chart,
    h(
      'p',
      { class: 'wb-note wb-live-legend', 'aria-hidden': 'true' },
      h('span', { class: 'wb-live-key wb-live-key-bare' }),
      'a step without the profiler ',
      h('span', { class: 'wb-live-key wb-live-key-profiled' }),
      `in a window, up to ${durationNs(most)} `,
      ...(windows.every(part => busyRatio(part) === null)
        ? []
        : [
            h('span', { class: 'wb-live-key wb-live-key-busy' }),
            'GPU busy, up to 100 %'
          ])
    )
  ];
}

/** Mean of a step in a window. */
export function stepNs(window: LiveWindow): number {
  return window.steps > 0 ? window.recorded_ns / window.steps : 0;
}

/** How much of a window the GPU worked; null where nobody knows. */
export function busyRatio(window: LiveWindow): number | null {
  const { gpu_busy_ns: busy, recorded_ns: recorded } = window;
  return busy === null || !(recorded > 0) ? null : Math.min(busy / recorded, 1);
}
