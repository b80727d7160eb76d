import assert from 'node:assert/strict';
import { existsSync, mkdtempSync, rmSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { after, describe, it } from 'node:test';
import { UpgradeProgress } from '../../adapters/cli/serve/upgrade.ts';
import { levelStore } from '../../adapters/level/index.ts';
import { checkFormat } from '../../lib/store/commits.ts';
import { copyServedFolder, SERVED_FOLDERS, type ServedFolder } from '../store/old-folder.ts';
import { checkDefinitions, checkRecords, type Upgraded, upgraded } from '../store/served-folder.ts';
import { testShell } from './shell.ts';

const home = mkdtempSync(join(tmpdir(), 'embermq-upgrade-'));
after(() => rmSync(home, { recursive: true, force: true }));

/** Runs `serve` on a copy of a folder while `use` runs. @returns its output to standard error */
async function onCopy(
  name: string,
  use: (broker: Upgraded, expected: ServedFolder, folder: string) => Promise<void>,
  more: (folder: string) => object = () => ({})
): Promise<string> {
  const folder = mkdtempSync(join(home, `${name}-`));
  const expected = copyServedFolder(name, folder);
  return upgraded(folder, expected, (broker) => use(broker, expected, folder), more(folder));
}

describe('serve on a data folder of an earlier release', () => {
  for (const name of SERVED_FOLDERS) {
    it(`keeps every rule, resource, stream, table, webhook, bridge and plugin: ${name}`, async () => {
      await onCopy(name, checkDefinitions);
    });

    it(`keeps users, applications, access rules, bans, sessions and retained messages: ${name}`, async () => {
      await onCopy(name, checkRecords);
    });

    it(`stops stream rules that are no longer valid with the reason, and reports the others in one line: ${name}`, async () => {
      let folder = '';
      const log = await onCopy(name, async ({ streams }, _, copy) => {
        folder = copy;
        const rules = (await streams('/rules')) as { readonly id: string; readonly status: string }[];
        const status = Object.fromEntries(rules.map((rule) => [rule.id, rule.status]));
        const isRunning = ['file-relative', 'file-default', 'file-template', 'scripted', 'by-hand', 'to-mqtt'];
        for (const id of isRunning) assert.equal(status[id], 'Running', id);
        const outside =
          /^Stopped: file sink: property path must be a path in the folder files of the stream service, or in a folder of the option folders/;
        assert.match(status['file-absolute'], outside);
        assert.match(status['file-source'], /^Stopped: file files.rows\.json not exist; rows\.json, which an earlier/);
      });
      assert.match(
        log,
        /^warn: an earlier release has written the store, and \d+ of its definitions behave differently now/m
      );
      assert.match(
        log,
        /\(stream rule file-above, file-absolute, file-default, file-in-plugins, file-outside and 2 more\)/
      );
      const places = `${join(folder, 'streams/files/rows.txt')} from now on; ${join(folder, 'streams/rows.txt')}, to which`;
      assert.equal(log.split(`warning: stream rule file-relative writes to ${places}`).length, 2);
    });

    it(`uses the folders that the config file allows, as before: ${name}`, async () => {
      const allowAll = (folder: string) => ({ folders: [join(folder, 'streams'), tmpdir()] });
      await onCopy(
        name,
        async ({ streams }, _, folder) => {
          const rules = (await streams('/rules')) as { readonly id: string; readonly status: string }[];
          assert.equal(rules.find(({ id }) => id === 'file-absolute')?.status, 'Running');
          assert.ok(existsSync(join(folder, 'streams/rows.txt')));
        },
        allowAll
      );
    });

    it(`says on standard error that it upgrades the folder, once: ${name}`, async () => {
      const lines = (log: string) => log.split('\n').filter((line) => /: upgrad(ing|ed)\b/.test(line));
      const folder = mkdtempSync(join(home, `${name}-`));
      const expected = copyServedFolder(name, folder);
      const [begin, end, ...more] = lines(await upgraded(folder, expected, async () => {}));
      assert.match(begin, /: upgrading the store, which an earlier release has written \(format \d\)$/);
      assert.match(end, /: upgraded; [\d,]+ records were read in \d+\.\d s$/);
      assert.deepEqual(more, []);
      assert.deepEqual(lines(await upgraded(folder, expected, async () => {})), []);
      const none = mkdtempSync(join(home, 'new-'));
      assert.deepEqual(lines(await upgraded(none, expected, async () => {})), []);
    });

    it(`shows the number of records on a terminal meanwhile: ${name}`, async () => {
      const folder = mkdtempSync(join(home, `${name}-`));
      copyServedFolder(name, folder);
      const shell = testShell();
      shell.stderr.isTTY = true;
      const store = levelStore(folder, { reserve: 0, onWarning: () => {} });
      const { read } = store;
      const progress = new UpgradeProgress(store, shell);
      await store.open();
      await checkFormat(store);
      await store.read(Buffer.of(0), Buffer.of(0xff), 1_000);
      progress.finish();
      await store.close();
      const [begin, bar, end] = shell
        .err()
        .split('\r')
        .map((part) => part.trim());
      assert.match(begin, /upgrading the store/);
      assert.match(bar, /^upgrade: [\d,]+ records$/);
      assert.equal(end, '');
      assert.equal(store.read, read, 'reads are no longer followed');
    });
  }
});
