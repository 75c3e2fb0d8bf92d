/** What the plugins give each other. */

import { Token } from '@lumino/coreutils';
import type { ActiveAlerts } from '../server/alerts';
import type { Bands } from '../notebook/bands';
import type { Machines } from '../notebook/machines';
import type { Settings } from '../core/settings';
import type { Stream } from '../core/page_stream';

export interface IWarpbook {
  readonly stream: Stream;
  readonly alerts: ActiveAlerts;
  readonly settings: Settings;
  /** Settles when the settings are known, or are known not to come. */
  readonly ready: Promise<void>;
}

export const IWarpbook = new Token<IWarpbook>(
  'warpbook:IWarpbook',
  "The page's stream of telemetry."
);

export const IBands = new Token<Bands>(
  'warpbook:IBands',
  'The executed cells of all open notebooks, as spans of time.'
);

export const IMachines = new Token<Machines>(
  'warpbook:IMachines',
  'The machines on which kernels of open notebooks run.'
);

/** The commands, and what the palette and the launcher call them together. */
export const CATEGORY = 'GPU';
export const NOTIFY_LONG_CELLS = 'warpbook:notify-long-cells';
/** The one dashboard of a page. */
export const DASHBOARD_ID = 'warpbook-dashboard';
export const OPEN_DASHBOARD = 'warpbook:dashboard';
export const OPEN_LABS = 'warpbook:open-labs';
export const OPEN_PANEL = 'warpbook:panel';
export const OPEN_REPORT = 'warpbook:open-report';
export const OPEN_TOUR = 'warpbook:tour';
export const WHY_SLOW = 'warpbook:why-slow';
/** Takes a `path`, or asks for a file. */
export const OPEN_TRACE = 'warpbook:open-trace';
/** Makes a document of a trace file. */
export const TRACE_FACTORY = 'warpbook report';
