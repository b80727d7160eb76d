import { BrokerError } from '../../lib/index.ts';

/** What to do about an open that failed, by what the error says. */
const REMEDIES: readonly (readonly [sign: RegExp, remedy: string])[] = [
  [/FOLDER_GONE/, 'Put it back, or end the process: the next one begins with an empty folder.'],
  [
    /EACCES|EPERM|permission denied|not permitted/i,
    'Give this process the right to read and write there, or name another folder.'
  ],
  [/EROFS|read-only/i, 'Make the file system writable, or name another folder.'],
  [/EISDIR/i, 'A folder is where a file should be: take it away.'],
  [/EEXIST|ENOTDIR|not a directory/i, 'A file is where a folder should be: name another folder.'],
  [
    /ENOSPC|EDQUOT|no space|quota/i,
    'Make room on its disk, or look at it with embermq store check|stats|export --scratch DIR.'
  ],
  [/ENOENT.*mkdir|(LOCK|dbtmp): no such file/i, 'Nothing can be made there: name another folder.'],
  [/EMFILE|ENFILE|too many open files/i, 'Raise the limit of open files.']
];

const NOT_AS_WRITTEN =
  'Its files are damaged: restore the folder from a copy, or go on without what is lost (option repairStore, embermq store check --repair).';

/**
 * Why a database did not open, or could not be read or repaired, for people.
 * @returns BrokerError STORE_LOCKED; STORE_DAMAGED where its files are not as they were written, and nowhere else; STORE_UNUSABLE
 */
export function openError(name: string, error: unknown, deed: 'opened' | 'read' | 'repaired' = 'opened'): BrokerError {
  const origin = innermost(error);
  if (origin.code === 'LEVEL_LOCKED') {
    const holder = origin.holder ?? 'another process, or by another store of this one';
    const text = `${name}: in use by ${holder}. Stop that one, or name another folder.`;
    return new BrokerError('STORE_LOCKED', text, { cause: error });
  }
  const isDamage = isDamaged(origin);
  const text = `${origin.code ?? ''} ${origin.message}`;
  const known = isDamage ? NOT_AS_WRITTEN : REMEDIES.find(([sign]) => sign.test(text))?.[1];
  const why = `the store can not be ${deed}: ${origin.message}`;
  return new BrokerError(
    isDamage ? 'STORE_DAMAGED' : 'STORE_UNUSABLE',
    `${name}: ${why}. ${known ?? 'Look at the cause, or name another folder.'}`,
    { cause: error }
  );
}

/** A repair takes out what it can not read, so a disk that is full, or a right that is wanting, must not look like damage. */
function isDamaged({ code, message }: Error & { readonly code?: string }): boolean {
  if (code === 'LEVEL_CORRUPTION') return true;
  // these two LevelDB makes itself
  return code === 'LEVEL_IO_ERROR' && /: no such file/i.test(message) && !/(LOCK|dbtmp): no such file/i.test(message);
}

/** abstract-level says that a database is not open, and its cause says why. */
function innermost(error: unknown): Error & { readonly code?: string; readonly holder?: string } {
  if (!(error instanceof Error)) return new Error(String(error));
  return error.cause === undefined ? error : innermost(error.cause);
}
