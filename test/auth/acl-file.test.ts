import assert from 'node:assert/strict';
import { mkdtempSync, rmSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { afterEach, beforeEach, describe, it } from 'node:test';
import { aclFile } from '../../adapters/auth/acl-file/index.ts';
import { acl, type Broker, createBroker } from '../../lib/index.ts';
import { createTestBroker } from '../../lib/testing/index.ts';

let folder: string;
let file: string;

beforeEach(() => {
  folder = mkdtempSync(join(tmpdir(), 'embermq-acl-'));
  file = join(folder, 'acl.conf');
});

afterEach(() => rmSync(folder, { recursive: true }));

/** The topics among these to which a client may publish. */
async function allowed(broker: Broker, username: string, ...topics: string[]): Promise<string[]> {
  await using client = await broker.connect({ username, protocolVersion: 5 });
  const found: string[] = [];
  for (const topic of topics)
    await client.publish(topic, 'x', { qos: 1 }).then(
      () => found.push(topic),
      (error) => assert.equal(error.reasonCode, 0x87)
    );
  return found;
}

/** The same rules in the three forms. */
const FORMS: Readonly<Record<string, string>> = {
  'acl.conf': '% staff\n{allow, {user, "ann"}, publish, ["a", "%u/#"]}.\n{deny, all, publish, ["b"]}.\n',
  'acl.json':
    '[{"access":"allow","username":"ann","action":"publish","topic":["a","%u/#"]},{"access":"deny","topic":"b"}]',
  'acl.yaml': '- { access: allow, username: ann, action: publish, topic: [a, "%u/#"] }\n- access: deny\n  topic: b\n',
  'acl.yml': '- access: allow\n  username: ann\n  topic: ["a", "%u/#"]\n'
};

describe('an ACL file', () => {
  for (const [name, text] of Object.entries(FORMS))
    it(`${name} decides about actions of clients, and refuses those without a rule`, async () => {
      file = join(folder, name);
      writeFileSync(file, text);
      await using kit = await createTestBroker({ auth: [aclFile({ file })], allowAnonymous: true });
      assert.deepEqual(await allowed(kit.broker, 'ann', 'a', 'b', 'ann/x', 'bob/x'), ['a', 'ann/x']);
      assert.deepEqual(await allowed(kit.broker, 'bob', 'a', 'bob/x'), []);
      assert.deepEqual(kit.broker.access.sources, ['acl-file']);
    });

  it('leaves authentication to other sources', async () => {
    writeFileSync(file, '{allow, all}.');
    await using kit = await createTestBroker({ auth: [aclFile({ file })] });
    assert.deepEqual(await allowed(kit.broker, 'ann', 'a'), ['a']);
  });

  it('applies after the rules of other sources, even those added later', async () => {
    writeFileSync(file, '{deny, all, pubsub, ["a", "b"]}.\n{allow, all}.\n');
    await using kit = await createTestBroker({ auth: [aclFile({ file })], allowAnonymous: true });
    assert.deepEqual(await allowed(kit.broker, 'ann', 'a', 'b', 'c'), ['c']);
    await kit.broker.access.create(acl([{ access: 'allow', topic: 'a' }]));
    await kit.broker.access.reload('acl-file');
    assert.deepEqual(await allowed(kit.broker, 'ann', 'a', 'b', 'c'), ['a', 'c']);
  });

  it('reads the file again on reload, and keeps the previous rules if it has an error', async () => {
    writeFileSync(file, '{allow, all, publish, ["a"]}.');
    await using kit = await createTestBroker({ auth: [aclFile({ file, name: 'rules' })], allowAnonymous: true });
    const { access } = kit.broker;
    writeFileSync(file, '{allow, all, publish, ["b"]}.\n{allow, all, publish, ["c"]}\n');
    await assert.rejects(access.reload('rules'), {
      code: 'ACL_FILE_INVALID',
      message: `${file}: line 3, column 1: expected a full stop after the rule, found the end of the file`
    });
    rmSync(file);
    await assert.rejects(access.reload('rules'), { code: 'FILE_UNREADABLE', message: /^cannot read .*ENOENT/ });
    assert.deepEqual(await allowed(kit.broker, 'ann', 'a', 'b', 'c'), ['a']);
    writeFileSync(file, '{allow, all, publish, ["b"]}.');
    await access.reload('rules');
    assert.deepEqual(await allowed(kit.broker, 'ann', 'a', 'b', 'c'), ['b']);
    writeFileSync(file, '');
    await access.reload('rules');
    assert.deepEqual(await allowed(kit.broker, 'ann', 'a', 'b', 'c'), [], 'without rules nothing is allowed');
  });

  it('refuses a file with an error, naming the file and the rule', async () => {
    const wrong: readonly (readonly [name: string, text: string, message: RegExp])[] = [
      ['acl.conf', '{allow, none}.', /acl\.conf: line 1, column 9: expected all/],
      ['acl.json', '[{"access":"permit"}]', /acl\.json: line 1: rule 1\.access: expected "allow" or "deny"/],
      ['acl.yaml', '- access: allow\n- acess: deny\n', /acl\.yaml: line 2: .*did you mean "access"/],
      [
        'acl.yaml',
        '# rules\n- access: deny\n-\n  access: allow\n  topic: a/#/b\n',
        /acl\.yaml: line 4: .*"#" may only be/
      ],
      ['acl.yaml', 'access: allow\n', /acl\.yaml: expected a list of access rules/],
      ['acl.yaml', '- access: allow\n- [a,\n', /^\S+acl\.yaml: [^\n]+ at line \d, column \d+$/],
      ['acl.json', '[\n  { "access":\n x }\n]', /^\S+acl\.json: not valid JSON: [^\n]+$/],
      ['acl.conf', '{allow, all, publish, ["eq a/+"]}.', /line 1, column 24: .*\{eq, "topic"\}/],
      ['acl.json', '[{"access":"deny","topic":["b","eq a/+"]}]', /line 1: .*"exact": true/]
    ];
    for (const [name, text, message] of wrong) {
      file = join(folder, name);
      writeFileSync(file, text);
      const broker = createBroker({ auth: [aclFile({ file })] });
      await assert.rejects(broker.start(), { code: 'ACL_FILE_INVALID', message });
      assert.equal(broker.state, 'idle');
    }
    assert.throws(() => aclFile({ file: 5 as never }), { code: 'OPTION_INVALID', field: 'file' });
  });
});
