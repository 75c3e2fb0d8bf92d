/** Checks of values whose shape nobody promises: what shapes/ is made of. */

export type Check = (value: unknown) => boolean;
/** A check that tells TypeScript what it found. */
export type Shape<T> = (value: unknown) => value is T;

export const text: Check = value => typeof value === 'string';
export const flag: Check = value => typeof value === 'boolean';
export const number: Check = value =>
  typeof value === 'number' && Number.isFinite(value);
export const whole: Check = value => Number.isInteger(value);

export const matching =
  (pattern: RegExp): Check =>
  value =>
    typeof value === 'string' && pattern.test(value);

export const oneOf =
  (...words: string[]): Check =>
  value =>
    words.includes(value as string);

export const optional =
  (check: Check): Check =>
  value =>
    value === null || check(value);

export const either =
  (...checks: Check[]): Check =>
  value =>
    checks.some(check => check(value));

export const list =
  (check: Check, most: number): Check =>
  value => {
    if (!Array.isArray(value) || value.length > most) {
      return false;
    }
    for (const item of value) {
      if (!check(item)) {
        return false;
      }
    }
    return true;
  };

export const tuple =
  (...checks: Check[]): Check =>
  value =>
    Array.isArray(value) &&
    value.length === checks.length &&
    checks.every((check, at) => check(value[at]));

const isObject = (value: unknown): value is Record<string, unknown> =>
  typeof value === 'object' && value !== null && !Array.isArray(value);

/** An object whose keys are anything, at most so many. */
export const map =
  (check: Check, most: number): Check =>
  value => {
    if (!isObject(value)) {
      return false;
    }
    const values = Object.values(value);
    return values.length <= most && values.every(check);
  };

/**
 * An object with these fields; others may be there. A field that is left out and
 * has a default is given it: an older server does not know the field.
 */
export const record = <T extends object>(
  fields: Record<keyof T, Check>,
  defaults: Partial<Record<keyof T, unknown>> = {}
): Shape<T> => {
  const entries = Object.entries<Check>(fields);
  const spare = new Map(Object.entries(defaults));
  return (value): value is T => {
    if (!isObject(value)) {
      return false;
    }
    for (const [name, check] of entries) {
      if (value[name] === undefined && spare.has(name)) {
        // a list of its own for each
        value[name] = structuredClone(spare.get(name));
      } else if (!check(value[name])) {
        return false;
      }
    }
    return true;
  };
};

/** One of several records, which say themselves which. */
export const tagged =
  (shapes: Record<string, Check>): Check =>
  value => {
    const type = isObject(value) ? value['type'] : undefined;
    return (
      typeof type === 'string' &&
      Object.hasOwn(shapes, type) &&
      shapes[type]?.(value) === true
    );
  };
