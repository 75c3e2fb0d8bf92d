/** The plugins of warpbook. */

import { alertsPlugin } from './plugins/alerts';
import { assistantsPlugin } from './plugins/assistants';
import { bandsPlugin } from './plugins/bands';
import { dashboardPlugin } from './plugins/dashboard';
import { labsPlugin } from './plugins/labs';
import { launcherPlugin } from './plugins/launcher';
import { machinesPlugin } from './plugins/machines';
import { openTracePlugin } from './plugins/open_trace';
import { outputPlugin } from './plugins/output';
import { panelPlugin } from './plugins/panel';
import { profileCellPlugin } from './plugins/profile_cell';
import { reportsPlugin } from './plugins/reports';
import { statusBarPlugin } from './plugins/statusbar';
import { streamPlugin } from './plugins/stream';

export default [
  streamPlugin,
  bandsPlugin,
  machinesPlugin,
  statusBarPlugin,
  panelPlugin,
  alertsPlugin,
  dashboardPlugin,
  outputPlugin,
  reportsPlugin,
  openTracePlugin,
  profileCellPlugin,
  assistantsPlugin,
  labsPlugin,
  launcherPlugin
];
