import type { ErrorCodeEntry } from './row.ts';

/** Codes of the command `embermq`. */
export const COMMAND_CODES = {
  ANONYMOUS_EXPOSED: {
    about: 'Anyone can connect from other machines: `serve` does not start, and a broker of an app warns.',
    remedy: 'Add a source of authentication, or allow it with `--allow-anonymous` or `allowAnonymous: true`.'
  },
  BENCH_UNKNOWN: { about: 'There is no such benchmark.', remedy: 'Use the name that the message suggests.' },
  BROKER_UNREACHABLE: { about: 'No broker answers at the address.', remedy: 'Check address and network.' },
  COMMAND_UNKNOWN: { about: 'There is no such command.', remedy: 'See `embermq --help`.' },
  CONFIG_INVALID: { about: 'The configuration file is invalid.', remedy: 'The message names the line.' },
  FILE_EXISTS: { about: 'The file exists.', remedy: 'Choose another name, or pass `--force` if the command has it.' },
  FLAG_INVALID: { about: 'A flag has an invalid value.', remedy: 'See the help of the command.' },
  FLAG_UNKNOWN: { about: 'There is no such flag.', remedy: 'Use the name that the message suggests.' },
  HEX_INVALID: {
    about: 'The input of `embermq decode --hex` is not hexadecimal.',
    remedy: 'Leave out `--hex` if the file has the bytes themselves.'
  },
  IMPORT_FAILED: { about: 'Some entries were not imported.', remedy: 'The message lists them.' },
  MANAGEMENT_EXPOSED: {
    about: 'The management interface could be reached from other machines without credentials.',
    remedy: 'Give credentials, or bind it to a loopback address.'
  },
  NOT_FOUND: { about: 'What was asked for does not exist.', remedy: 'List what there is.' },
  REQUEST_FAILED: {
    about: 'The management interface could not be called.',
    remedy: 'Check its address, and whether the broker runs.'
  },
  URL_INVALID: { about: 'A URL is invalid.', remedy: 'Write it like `mqtt://host:1883`.' }
} as const satisfies Readonly<Record<string, ErrorCodeEntry>>;
