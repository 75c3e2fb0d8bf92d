/**
 * The notebook widget `warpbook.Monitor()`: live charts in an output.
 *
 * The telemetry comes from the server, not from the kernel, so the charts keep
 * moving while a cell blocks the kernel, and after the kernel has died. Only on a
 * page that has no warpbook server does it come from the kernel.
 */

import 'uplot/dist/uPlot.min.css';
import '../../style/colours.css';
import '../../style/chart.css';
import '../../style/monitor.css';
import { findFeed } from './feed';
import type { Comm } from './kernel';
import type { Options } from './view';
import { Monitor } from './view';

type Model = Comm & Options;

function render({ model, el }: { model: Model; el: HTMLElement }) {
  let monitor: Monitor | null = null;
  let gone = false;
  void findFeed(model).then(feed => {
    if (!gone) {
      monitor = new Monitor(model, feed);
      el.append(monitor.node);
    }
  });
  return () => {
    gone = true;
    monitor?.dispose();
  };
}

export default { render };
