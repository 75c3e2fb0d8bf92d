/** What runs on a page of the hub. */

import { watchTable } from './class_table';
import { fillTimes, watchForms } from './forms';
import { refresh } from './fragments';
import { watchGrid } from './gradebook_grid';
import { watchOrders } from './gradebook_orders';
import { follow } from './live';
import { course } from './page';
import { watchRoster } from './roster';
import { showTimes } from './times';

showTimes(document);
fillTimes(document);
watchForms();
watchTable();
watchRoster();
watchGrid();
watchOrders();
const TIME_LEFT_MS = 10_000;
if (document.querySelector('[data-live~="gpus"]') !== null) {
  setInterval(() => void refresh(), TIME_LEFT_MS);
}
if (course !== '') {
  void follow();
}
