// Generated from extension/warpbook/*protocol.py. Do not edit.

import type { Shape } from './checks';
import * as check from './checks';
import type * as types from './protocol';

export const isAlertRule: Shape<types.AlertRule> = check.record<types.AlertRule>({
  name: check.text,
  is_own: check.flag,
  settings: check.map(check.optional(check.either(check.flag, check.number, check.text)), 200),
  written: check.list(check.text, 100),
}, {
  written: [],
});

export const isAlertRules: Shape<types.AlertRules> = check.record<types.AlertRules>({
  file: check.text,
  version: check.text,
  problem: check.text,
  rules: check.list(isAlertRule, 1000),
}, {
  rules: [],
});
