import { InvalidInput } from '../../base/errors.ts';

/** Check the name of a connector, which is also part of URLs and of names in the store. @throws InvalidInput OPTION_INVALID */
export function checkConnectorName(value: unknown, field: string): string {
  if (typeof value !== 'string' || !/^(?!\.{1,2}$)[\w.-]{1,64}$/.test(value))
    throw new InvalidInput(
      'OPTION_INVALID',
      field,
      '1 to 64 letters, digits, ".", "-" and "_", and not "." or ".."',
      value
    );
  return value;
}
