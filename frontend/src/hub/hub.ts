/** What runs on a page of the hub. */

import { watchTable } from './class_table';
import { fillTimes, watchForms } from './forms';
import { follow } from './live';
import { course } from './page';
import { showTimes } from './times';

showTimes(document);
fillTimes(document);
watchForms();
watchTable();
if (course !== '') {
  void follow();
}
