import { backup } from '../../../../lib/index.ts';
import { replyWithLines } from '../../line-reply.ts';
import { type Operation, operation } from '../../operation.ts';

/** A copy of the store, made while the broker runs. */
export const BACKUP: readonly Operation[] = [
  operation({
    name: 'backup_store',
    method: 'POST',
    path: '/x/backup',
    ctl: 'backup FILE --force',
    descr: 'Back up the store while the broker runs: lines of JSON for "embermq store import"',
    isForAdministrators: true,
    isForApplications: true,
    contentType: 'application/jsonl',
    run: async ({ broker }) => replyWithLines(await backup(broker))
  })
];
