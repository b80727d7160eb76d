import assert from 'node:assert/strict';
import { describe, it } from 'node:test';
import { hideInText, isSecretByName, shownUrl } from '../../lib/base/hidden-text.ts';

describe('A URL in messages', () => {
  const rows: [url: string, shown: string][] = [
    ['http://host:80/a/b', 'http://host:80/a/b'],
    ['mqtt://user:pass@host', 'mqtt://***@host'],
    ['http://user:p/a@ss@host/x', 'http://***@host/x'],
    ['http://user:p?ss@host/x', 'http://***@***'],
    ['http://user:p/?ss@host/x', 'http://***@***'],
    ['http://host:80/hook?mail=a@b.example', 'http://host:80/hook?mail=***'],
    ['http://[::1]:80/hook?mail=a@b.example', 'http://[::1]:80/hook?mail=***'],
    ['http://host/hook?token=abc&id=1', 'http://host/hook?token=***&id=***'],
    ['http://host/hook?mail=a@b.example', 'http://host/hook?mail=***'],
    ['https://host/hook?abc', 'https://host/hook?***'],
    ['https://host/a?t=x==y#access_token=z', 'https://host/a?t=***#access_token=***'],
    ['/rules?key=k', '/rules?key=***'],
    ['not a url', 'not a url']
  ];
  for (const [url, shown] of rows) it(`shows ${shown} instead of ${url}`, () => assert.equal(shownUrl(url), shown));

  // with a regular expression that backtracks, the first of these would take hours
  for (const [what, url] of [
    ['colons', `//${':'.repeat(60_000)}/x/`],
    ['slashes', '/'.repeat(60_000)]
  ])
    it(`takes time in proportion to a URL of many ${what}`, () => assert.equal(shownUrl(url), url));
});

describe('Names that denote secrets', () => {
  const secret = 'password passwd auth_opt_pass dbPass pass auth.ldap.bind_pass passphrase pass_phrase psk bridge_psk';
  const others = 'client_secret authToken authorization Authorization set-cookie api_key apikey credentials';
  for (const name of [...secret.split(' '), ...others.split(' ')])
    it(`hides the value of ${name}, also in JSON`, () => {
      assert.equal(isSecretByName(name, 'x'), true);
      assert.equal(hideInText(`{"${name}": "x"}`), `{"${name}": "******"}`);
    });

  for (const name of 'bypass bypassAuthPlugins compass passive max_tokens maxConnections pskFile psk_hint key'.split(
    ' '
  ))
    it(`shows the value of ${name}`, () => assert.equal(isSecretByName(name, 'x'), false));
});
