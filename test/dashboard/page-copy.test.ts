// Commands of forms that are copied.
import assert from 'node:assert/strict';
import { describe, it } from 'node:test';
import { ctlText, urlFlag, withoutSecrets } from '../../adapters/dashboard/page/model/copy.ts';
import { isSecretByName } from '../../lib/base/hidden-text.ts';

describe('Copied commands for forms', () => {
  it('names the URL of the console to ctl, unless it is that of serve on the same machine', () => {
    assert.deepEqual(urlFlag('http://127.0.0.1:18083/', 'api'), []);
    assert.deepEqual(urlFlag('https://host/console/', 'api'), ['--url=https://host/console/api']);
    assert.deepEqual(urlFlag('http://localhost:3000/', 'streams'), ['--rules-url=http://localhost:3000/streams']);
  });

  it('passes a body to ctl as its standard input, and separates arguments from flags where that is needed', () => {
    assert.equal(ctlText(['webhooks', 'start', '--', 'audit']), 'embermq ctl webhooks start audit');
    assert.equal(ctlText(['webhooks', 'start', '--', '-x']), 'embermq ctl webhooks start -- -x');
    assert.equal(
      ctlText(['bridges', 'change', '--', 'b', '-'], `{"url":"it's"}`),
      `printf %s '{"url":"it'\\''s"}' | embermq ctl bridges change b -`
    );
  });

  it('writes a placeholder for each secret, at any depth and in URLs, and keeps what stands for a present one', () => {
    const given = {
      url: 'mqtt://me:ge@heim@host/a?b=geheim&c=******',
      password: 'geheim',
      headers: { a: 'geheim' },
      tls: { key: 'geheim', passphrase: '******' },
      actions: [{ name: 'data_to_webserver', params: { apiKey: 'geheim', hasPassword: true } }],
      bodyTemplate: 'geheim',
      out: []
    };
    assert.deepEqual(withoutSecrets(given, new Set(['bodyTemplate'])), {
      url: 'mqtt://<login>@host/a?b=<b>&c=******',
      password: '<password>',
      headers: { a: '<a>' },
      tls: { key: '<key>', passphrase: '******' },
      actions: [{ name: 'data_to_webserver', params: { apiKey: '<apiKey>', hasPassword: true } }],
      bodyTemplate: '<bodyTemplate>',
      out: []
    });
  });

  it('knows the names of secrets that the broker knows', () => {
    for (const name of [
      'dbPassword',
      'accessToken',
      'maxTokens',
      'tokenize',
      'Cookie',
      'api-key',
      'topic',
      'credentials'
    ])
      assert.equal(
        (withoutSecrets({ [name]: 'value' }) as Record<string, unknown>)[name] !== 'value',
        isSecretByName(name, 'value'),
        name
      );
  });
});
