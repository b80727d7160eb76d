import { BrokerError } from '../../lib/index.ts';

const OUT_OF_SPACE = /ENOSPC|EDQUOT|no space|quota/i;

/** Remedies for a failed open, by the text of the error. */
const REMEDIES: readonly (readonly [sign: RegExp, remedy: string])[] = [
  [/Cannot find (package|module) 'level'/, 'Run `npm install level`; a bundle needs it next to it as well.'],
  [/FOLDER_GONE/, 'Move it back, or restart the process, which then starts with an empty folder.'],
  [
    /EACCES|EPERM|permission denied|not permitted/i,
    'Give this process permission to read and write there, or name another folder.'
  ],
  [/EROFS|read-only/i, 'Make the file system writable, or name another folder.'],
  [/EISDIR/i, 'A folder is in the place of a file: remove it.'],
  [/EEXIST|ENOTDIR|not a directory/i, 'A file is in the place of a folder: name another folder.'],
  [OUT_OF_SPACE, 'Free some disk space, or read the store with embermq store check|stats|export --scratch DIR.'],
  [/ENOENT.*mkdir|(LOCK|dbtmp): no such file/i, 'No file can be created there: name another folder.'],
  [/EMFILE|ENFILE|too many open files/i, 'Raise the limit on open files.']
];

const DAMAGE_REMEDY =
  'Restore the folder from a backup, or continue without the lost records (option repairStore, embermq store check --repair).';

/**
 * Translate an error of LevelDB or the file system into a BrokerError that names the store, the cause and the remedy.
 * @param name name of the store
 * @returns BrokerError STORE_LOCKED; STORE_DAMAGED only if files are damaged or missing; else STORE_UNUSABLE
 */
export function openError(
  name: string,
  error: unknown,
  action: 'opened' | 'read' | 'repaired' = 'opened'
): BrokerError {
  const origin = innermost(error);
  if (origin.code === 'LEVEL_LOCKED') {
    const holder = origin.holder ?? 'another process, or by another store of this process';
    const text = `${name}: in use by ${holder}. Stop it, or name another folder.`;
    return new BrokerError('STORE_LOCKED', text, { cause: error });
  }
  const isDamage = isDamaged(origin);
  const text = `${origin.code ?? ''} ${origin.message}`;
  const known = isDamage ? DAMAGE_REMEDY : REMEDIES.find(([sign]) => sign.test(text))?.[1];
  const why = `the store cannot be ${action}: ${origin.message}`;
  return new BrokerError(
    isDamage ? 'STORE_DAMAGED' : 'STORE_UNUSABLE',
    `${name}: ${why}. ${known ?? 'Remove the cause, or name another folder.'}`,
    { cause: error }
  );
}

/** Check whether the disk is full or a quota is exhausted. */
export function isOutOfSpace(error: unknown): boolean {
  const { code, message } = innermost(error);
  return OUT_OF_SPACE.test(`${code ?? ''} ${message}`);
}

/**
 * Check whether files are damaged. A repair removes unreadable files, so a full disk or a missing permission must not
 * count as damage.
 */
function isDamaged({ code, message }: Error & { readonly code?: string }): boolean {
  if (code === 'LEVEL_CORRUPTION') return true;
  // LevelDB creates LOCK and files named *.dbtmp itself, so a missing one is not damage
  return code === 'LEVEL_IO_ERROR' && /: no such file/i.test(message) && !/(LOCK|dbtmp): no such file/i.test(message);
}

/** Find the original error: abstract-level reports that a database is not open, with the reason as the cause. */
function innermost(error: unknown): Error & { readonly code?: string; readonly holder?: string } {
  if (!(error instanceof Error)) return new Error(String(error));
  return error.cause === undefined ? error : innermost(error.cause);
}
