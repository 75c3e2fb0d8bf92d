/** Checks of values whose shape nobody promises: what a message is made of. */

export type Check = (value: unknown) => boolean;

export const string: Check = value => typeof value === 'string';
export const number: Check = value =>
  typeof value === 'number' && Number.isFinite(value);
export const whole: Check = value => Number.isInteger(value);
export const optional =
  (check: Check): Check =>
  value =>
    value === null || check(value);
/** A field that came later: a record that an older version kept has none. */
export const later =
  (check: Check): Check =>
  value =>
    value === undefined || check(value);
export const list =
  (check: Check, most = 100_000): Check =>
  value =>
    Array.isArray(value) && value.length <= most && value.every(check);
export const record =
  (fields: Record<string, Check>): Check =>
  value =>
    typeof value === 'object' &&
    value !== null &&
    Object.entries(fields).every(([name, check]) =>
      check((value as Record<string, unknown>)[name])
    );
/** Whatever its keys are, each is a word or a number. */
export const facts: Check = value =>
  typeof value === 'object' &&
  value !== null &&
  Object.values(value).every(fact => string(fact) || number(fact));
