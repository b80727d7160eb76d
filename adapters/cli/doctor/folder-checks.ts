// The checks of the data folder. They read its files, and never open the store: LevelDB writes when it opens a
// folder, and closing a descriptor of the file LOCK would release the lock of a broker.

import { constants } from 'node:fs';
import { access, readdir, stat } from 'node:fs/promises';
import { dirname, join, resolve } from 'node:path';
import { DEFINITIONS_VERSION, FORMAT } from '../../../lib/adapter.ts';
import {
  type Check,
  type Finding,
  fault,
  GROUP_AND_OTHERS,
  OTHERS,
  ok,
  quoted,
  reportOf,
  type Subject,
  shownMode,
  sized,
  warning
} from './check.ts';

/** Files of the data folder with a secret in clear text, which are to be deleted. */
const FIRST_SECRETS = ['first-application', 'first-user'];
/** Below this, LevelDB may run out of space before its compactions free some. */
const SMALL_BYTES = 67_108_864;
/** Free space below which the disk counts as nearly full: a share, and bytes. */
const LOW_SHARE = 0.1;
const LOW_BYTES = 268_435_456;
const LOW_FILES = 1_000;

/** Types of file systems that are served by another machine; locks and fsync do not work on all of them. */
const NETWORK_TYPES: Readonly<Record<number, string>> = {
  26985: 'NFS',
  20859: 'SMB',
  4283649346: 'SMB',
  4266872130: 'SMB',
  12805120: 'Ceph',
  1397113167: 'AFS',
  198183888: 'Lustre',
  18225520: 'GFS2',
  1952539503: 'OCFS2'
};
/** Types of file systems that another program serves, on this machine or on another one. */
const SERVED_TYPES: Readonly<Record<number, string>> = { 1702057286: 'FUSE', 16914839: '9P' };
/** Types of file systems that do not outlive the machine or the container. */
const TRANSIENT_TYPES: Readonly<Record<number, string>> = {
  16914836: 'tmpfs, which is in memory: the state is lost when the machine restarts',
  2240043254: 'ramfs, which is in memory: the state is lost when the machine restarts',
  2035054128: 'overlayfs, the layer of a container: the state is lost when the container is removed'
};

/** The releases that wrote a version of the definitions. */
const WRITTEN_BY: Readonly<Record<number, string>> = { 0: 'embermq 0.2 or earlier', 3: 'embermq 0.3' };

/** The folder itself, or its next parent that exists. */
async function existing(path: string): Promise<string> {
  for (let at = resolve(path); ; at = dirname(at)) {
    const isThere = await stat(at).then(
      () => true,
      () => false
    );
    if (isThere || dirname(at) === at) return at;
  }
}

/** Run a check of the folder, if it exists. */
function ofFolder(run: (folder: string, subject: Subject) => Finding[] | Promise<Finding[]>): Check['run'] {
  return async (subject) => {
    const { folder } = subject;
    const found = folder === undefined ? undefined : await stat(folder).catch(() => undefined);
    return folder === undefined || found?.isDirectory() !== true ? [] : run(folder, subject);
  };
}

async function checkFolder({ folder, isNamed, machine }: Subject): Promise<Finding[]> {
  if (folder === undefined)
    return [
      warning(
        'all state is in memory (--memory), and is lost when the broker stops',
        'Use --data-dir DIR, unless this is intended.'
      )
    ];
  const found = await stat(folder).catch((error: NodeJS.ErrnoException) => error);
  if (found instanceof Error && found.code === 'ENOENT') {
    if (isNamed)
      return [fault(`${folder} does not exist`, 'Name the folder of serve --data-dir, or start the broker once.')];
    const parent = await existing(folder);
    return (await isUsable(parent))
      ? [ok(`${folder} does not exist yet; serve creates it`)]
      : [fault(`${folder} does not exist, and ${machine.userName} may not create it in ${parent}`)];
  }
  if (found instanceof Error) return [fault(`${folder}: ${found.message}`)];
  if (!found.isDirectory()) return [fault(`${folder} is not a folder`, 'Name another folder with --data-dir.')];
  if (!(await isUsable(folder))) return [fault(`the user ${machine.userName} may not read and write ${folder}`)];
  const names = await readdir(folder);
  const isForeign =
    names.length > 0 && !names.some((name) => /^CURRENT$|^LOCK$|^MANIFEST-|\.(ldb|sst|log)$/.test(name));
  if (isForeign)
    return [
      warning(`${folder} has files, but no store: is it the right folder?`, 'Name the folder of serve --data-dir.')
    ];
  return [ok(`${folder} can be read and written by the user ${machine.userName}`)];
}

function isUsable(folder: string): Promise<boolean> {
  return access(folder, constants.R_OK | constants.W_OK | constants.X_OK).then(
    () => true,
    () => false
  );
}

const checkOwner = ofFolder(async (folder, { machine }) => {
  const { uid } = await stat(folder);
  if (machine.uid === undefined) return [];
  if (uid === machine.uid) return [ok(`the folder belongs to the user ${machine.userName}`)];
  const text = `the folder belongs to the user id ${uid}, and this is ${machine.userName} (${machine.uid})`;
  return [warning(`${text}: files that one of them creates may be unusable for the other`)];
});

const checkMode = ofFolder(async (folder, { machine }) => {
  if (machine.platform === 'win32') return [];
  const { mode } = await stat(folder);
  if ((mode & GROUP_AND_OTHERS) === 0) return [ok(`only its owner can use the folder (mode ${shownMode(mode)})`)];
  const text = `other users of this machine can use the folder (mode ${shownMode(mode)}), which has messages, passwords and keys`;
  const finding = (mode & OTHERS) === 0 ? warning : fault;
  return [finding(text, `chmod 700 ${quoted(folder)}`)];
});

const checkSecrets = ofFolder(async (folder, { machine }) => {
  const findings: Finding[] = [];
  for (const name of FIRST_SECRETS) {
    const path = join(folder, name);
    const found = await stat(path).catch(() => undefined);
    if (found === undefined) continue;
    const isOpen = machine.platform !== 'win32' && (found.mode & GROUP_AND_OTHERS) !== 0;
    const remedy = `Put its first line in a safe place, and delete it: rm ${quoted(path)}`;
    if (isOpen)
      findings.push(fault(`${path} has a secret that others can read (mode ${shownMode(found.mode)})`, remedy));
    else findings.push(warning(`${path} still has a secret in clear text`, remedy));
  }
  return findings.length === 0 ? [ok('there are no files with first secrets')] : findings;
});

const checkReport = ofFolder((_, { report }) => {
  if (!(report instanceof Error)) return [];
  return [fault(`the files of the folder cannot be examined: ${report.message}`)];
});

const checkFormat = ofFolder((folder, subject) => {
  const report = reportOf(subject);
  if (report === undefined || !report.hasStore) return [];
  const { format, isUnfinishedImport, damages } = report;
  if (isUnfinishedImport)
    return [
      fault(
        'an import into the store was interrupted',
        `Import again, which starts from the beginning: embermq store import ${quoted(folder)} < FILE`
      )
    ];
  if (format === undefined)
    return damages.length > 0
      ? []
      : [
          fault(
            'the store has no format record, or one that cannot be read: it is damaged, or of another program',
            'Restore a backup, or name another folder.'
          )
        ];
  const by = WRITTEN_BY[format.definitions] ?? `a release with definitions of version ${format.definitions}`;
  const versions = `format ${format.format}, written by ${by}`;
  if (format.format > FORMAT)
    return [
      fault(
        `${versions}: this release reads formats up to ${FORMAT}`,
        'Use the release that wrote the folder, or a newer one.'
      )
    ];
  const backup = `Before the first start with this release, copy the folder, or run embermq store export ${quoted(folder)}.`;
  if (format.definitions > DEFINITIONS_VERSION) return [warning(`${versions}, which is newer than this one`, backup)];
  if (format.format < FORMAT || format.definitions < DEFINITIONS_VERSION)
    return [
      warning(`${versions}: the next start upgrades it, and earlier releases may not read it afterwards`, backup)
    ];
  return [ok(versions)];
});

const checkDamage = ofFolder((folder, subject) => {
  const report = reportOf(subject);
  if (report === undefined || !report.hasStore) return [];
  if (report.holder !== undefined)
    return [ok('the files were verified when the running broker started; they change now, and are not read')];
  if (report.damages.length === 0) return [ok('the checksums of all files of the store are right')];
  const remedy = `Restore a backup, or continue without the lost records: embermq store check ${quoted(folder)} --repair`;
  return report.damages.map(({ file, why }) =>
    fault(`${file} ${why === undefined ? 'is missing' : `is damaged: ${why}`}`, remedy)
  );
});

const checkLeftovers = ofFolder(async (folder, subject) => {
  const report = reportOf(subject);
  const findings: Finding[] = [];
  if (report !== undefined && report.leftovers.length > 0)
    findings.push(
      warning(
        `interrupted writes have left ${report.leftovers.slice(0, 5).join(', ')}${report.leftovers.length > 5 ? ', ...' : ''}`,
        'Nothing is lost. The next start deletes these files.'
      )
    );
  const lost = join(folder, 'lost');
  const moved = await readdir(lost).catch(() => []);
  if (moved.length > 0)
    findings.push(
      warning(
        `a repair has moved ${moved.length} files to ${lost}`,
        `Delete the folder if nothing in it is needed: rm -r ${quoted(lost)}`
      )
    );
  return findings.length > 0 || report === undefined ? findings : [ok('there are no leftovers of interrupted writes')];
});

async function checkSpace({ folder, machine }: Subject): Promise<Finding[]> {
  if (folder === undefined) return [];
  const { bytes, freeBytes, files, freeFiles } = await machine.fileSystem(await existing(folder));
  if (bytes === 0) return []; // of the system, such as /proc
  const findings: Finding[] = [];
  const free = `${sized(freeBytes)} of ${sized(bytes)} are free`;
  if (freeBytes === 0) findings.push(fault('the disk is full'));
  else if (bytes < SMALL_BYTES)
    findings.push(warning(`the file system has only ${sized(bytes)}`, 'Use a file system with 64 MB or more.'));
  else if (freeBytes < LOW_BYTES && freeBytes < bytes * LOW_SHARE) findings.push(warning(`only ${free}`));
  if (files > 0 && freeFiles < LOW_FILES)
    findings.push(
      (freeFiles === 0 ? fault : warning)(
        `only ${freeFiles} more files (inodes) can be created`,
        'Delete files that are not needed, or use another file system.'
      )
    );
  return findings.length > 0 ? findings : [ok(free)];
}

async function checkFileSystem({ folder, machine }: Subject): Promise<Finding[]> {
  if (folder === undefined || machine.platform !== 'linux') return [];
  const path = await existing(folder);
  const { type } = await machine.fileSystem(path);
  const network = NETWORK_TYPES[type];
  const local = 'Use a folder on a local disk.';
  if (network !== undefined)
    return [
      fault(`${path} is on ${network}, a file system of another machine: locks and fsync may not work there`, local)
    ];
  const served = SERVED_TYPES[type];
  if (served !== undefined)
    return [
      warning(`${path} is on ${served}: whether locks and fsync work depends on the program that serves it`, local)
    ];
  const transient = TRANSIENT_TYPES[type];
  if (transient !== undefined)
    return [warning(`${path} is on ${transient}`, 'Use a folder on a disk, or a volume of the container.')];
  return [ok(`${path} is on a local file system`)];
}

/** The checks of the data folder. */
export const FOLDER_CHECKS: readonly Check[] = [
  {
    id: 'folder',
    title: 'The data folder exists and can be used',
    remedy: 'Run embermq as the user that owns the folder, or name another one with --data-dir.',
    run: checkFolder
  },
  {
    id: 'folder-owner',
    title: 'The data folder belongs to the user of the broker',
    remedy: 'Run the doctor as the user of the broker, and give this user the folder: chown -R USER DIR',
    run: checkOwner
  },
  { id: 'folder-mode', title: 'Only its owner can use the data folder', remedy: 'chmod 700 DIR', run: checkMode },
  {
    id: 'first-secrets',
    title: 'The files `first-application` and `first-user` were deleted',
    remedy: 'Put the first line of the file in a safe place, and delete the file.',
    run: checkSecrets
  },
  {
    id: 'folder-files',
    title: 'The files of the data folder can be read',
    remedy: 'Run the doctor as the user of the broker.',
    run: checkReport
  },
  {
    id: 'store-format',
    title: 'This release reads the store, and no upgrade is pending',
    remedy: 'Copy the folder before the first start with another release.',
    run: checkFormat
  },
  {
    id: 'store-files',
    title: 'No file of the store is damaged or missing',
    remedy: 'Restore a backup, or run `embermq store check DIR --repair`.',
    run: checkDamage
  },
  {
    id: 'leftovers',
    title: 'Interrupted writes and repairs have left no files',
    remedy: 'The next start deletes files of interrupted writes. Delete the folder `lost` if nothing in it is needed.',
    run: checkLeftovers
  },
  {
    id: 'disk-space',
    title: 'There are free bytes and free inodes',
    remedy: 'Free some disk space, or move the folder to a larger file system.',
    run: checkSpace
  },
  {
    id: 'file-system',
    title: 'The data folder is on a local disk',
    remedy: 'Use a folder on a local disk, or a volume of the container.',
    run: checkFileSystem
  }
];
